#include "study/stages/controls.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/mechanism_name.hpp"
#include "statistics/sequential.hpp"
#include "study/session/session.hpp"
#include "study/session/set_up.hpp"
#include "study/stages/rates.hpp"

namespace nas {

namespace {

Architecture without_mixers(Architecture model) {
  for (auto& layer : model.stack) {
    Mechanism bare;
    bare.set("mixer", "none");
    bare.set("ffn", layer.word("ffn"));
    bare.set("ratio", layer.integer("ratio"));
    layer = bare;
  }
  return model;
}

/// Layers that mix otherwise than by attention stay as they are.
Architecture with_window(Architecture model, std::int64_t window) {
  for (auto& layer : model.stack) {
    if (layer.word("mixer") != "attn") continue;
    layer.set("pattern", "window");
    layer.set("window", window);
    layer.set("globals", 0);
  }
  return model;
}

}  // namespace

std::vector<Control> controls_of(const Experiment& experiment, const Problem& problem,
                                 const std::vector<std::int64_t>& windows) {
  if (experiment.baseline.empty() || !problem.expensive()) return {};
  if (experiment.semantics == Semantics::published) return {};  // knows neither
  const auto baseline = problem.parse(experiment.baseline);
  const auto model = parse_model(baseline.name, frame_of(experiment));
  std::vector<std::pair<std::string, Architecture>> wanted;
  wanted.emplace_back("no mixer", without_mixers(model));
  for (const auto window : windows) {
    if (window >= model.context) continue;
    wanted.emplace_back("window " + std::to_string(window), with_window(model, window));
  }
  std::vector<Control> controls;
  std::vector<std::string> known{baseline.name};
  for (const auto& [name, architecture] : wanted) {
    const auto canonical = candidate_of(architecture);
    if (!canonical.refusal.empty()) continue;
    if (std::find(known.begin(), known.end(), canonical.name) != known.end()) continue;
    known.push_back(canonical.name);
    controls.push_back({name, problem.parse(canonical.name)});
  }
  return controls;
}

std::vector<Control> controls_of(const Experiment& experiment, const Problem& problem) {
  if (!experiment.controls) return {};
  return controls_of(experiment, problem, {std::begin(kControlWindows), std::end(kControlWindows)});
}

void train_controls(const StageWork& work) {
  if (work.experiment.retest.get<std::int64_t>("replicates") > 0) return;
  const auto controls = controls_of(work.experiment, *work.setup.problem);
  if (controls.empty()) return;
  const RunSummary run(work.store);
  if (!run.baseline) return;
  Rates rates(work);
  const bool score_test = work.experiment.training.get<bool>("score_test");
  std::vector<std::int64_t> replicates;
  for (const auto* evaluation : run.baseline->evaluations) {
    replicates.push_back(evaluation->replicate);
  }
  std::vector<FurtherTraining> trainings;
  for (const auto& control : controls) {
    const auto given = work.experiment.rates.find(control.name);
    const double rate = given != work.experiment.rates.end() ? given->second : rates.own();
    trainings.push_back({rates.at(rate, score_test), control.candidate, replicates});
  }
  train_further(trainings, work, "controls");
  auto record = nlohmann::json::array();
  for (std::size_t i = 0; i < controls.size(); ++i) {
    const auto& control = controls[i];
    const auto& own = trainings[i].evaluations;
    auto ids = nlohmann::json::array();
    for (const auto& evaluation : own) ids.push_back(evaluation.id);
    const auto judgement = work.setup.objectives.judge(pointers(own));
    record.push_back(
        {{"name", control.name},
         {"candidate", control.candidate.name},
         {"learning_rate", trainings[i].problem->identity().value(
                               "/training/learning_rate"_json_pointer, nlohmann::json())},
         {"evaluations", ids},
         {"fitness", judgement.measured.empty() ? judgement.fitness : judgement.measured}});
  }
  work.store.set_meta("controls", record);
}

void record_counts(const StageWork& work) {
  if (!work.experiment.controls || !work.setup.problem->expensive() ||
      work.store.meta("count_models"))
    return;
  if (const auto counts = work.setup.problem->counts(); counts.is_array()) {
    work.store.set_meta("count_models", counts);
  }
}

std::int64_t control_trainings(const Experiment& experiment, const Problem& problem) {
  const auto options = evaluator_options(experiment);
  auto retested = experiment.retest.get<std::int64_t>("replicates");
  if (experiment.retest.get<double>("until") > 0.0) retested = std::min(retested, kFirstSeeds);
  const auto controls = controls_of(experiment, problem);
  std::vector<RateRow> rows;
  for (const auto& control : controls) rows.push_back({control.name, control.candidate});
  return (retested > 0 ? rate_trainings(experiment, rows) : 0) +
         std::ssize(controls) * (retested > 0     ? retested
                                 : options.racing ? options.racing->replicates
                                                  : options.replicates);
}

}  // namespace nas
