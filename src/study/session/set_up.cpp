#include "study/session/set_up.hpp"

#include <filesystem>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/plugin.hpp"
#include "core/version.hpp"
#include "core/warning.hpp"
#include "data/corpus_facts.hpp"
#include "instruments/environment.hpp"
#include "ops/memory.hpp"
#include "report/record_schema.hpp"
#include "store/replicates.hpp"
#include "study/reader/rules.hpp"
#include "study/session/continuing.hpp"
#include "study/session/ranges.hpp"
#include "study/session/session.hpp"

namespace nas {

namespace fs = std::filesystem;

std::unique_ptr<StudySetup> set_up(const Experiment& experiment, const fs::path& folder) {
  nn::install_cpu_allocator();  // before the first tensor
  auto setup = std::make_unique<StudySetup>();
  setup->objectives = experiment.objectives;
  setup->problem = make_problem(experiment, setup->objectives, folder);
  if (setup->problem->expensive()) {
    const auto threads = experiment.evaluation.get<std::int64_t>("threads");
    nn::take_product_buffers(setup->problem->num_workers() * static_cast<int>(threads));
  }
  require_affordable(experiment, *setup->problem);
  setup->facts = setup->problem->facts();
  ShownCandidates shown;
  if (experiment.mechanisms.empty()) {
    setup->problem->require_memory(experiment.space);
    shown = shown_candidates(experiment.space, *setup->problem);
    setup->feasibility = feasibility(setup->objectives, shown, *setup->problem);
    if (setup->feasibility) setup->feasibility->require_any();
  } else {
    for (const auto& candidate :
         listed_candidates(experiment, setup->objectives, *setup->problem)) {
      setup->problem->require_memory(candidate);
    }
  }
  set_expected_ranges(setup->objectives, shown, *setup->problem, setup->facts);
  const RuleFacts facts{.experiment = experiment,
                        .problem = setup->problem.get(),
                        .device = setup->facts.value("device", "cpu")};
  for (const auto& breach : breaches(RuleStage::set_up, facts)) throw InputError(breach.text());
  (void)fidelity_of(experiment, *setup->problem);
  return setup;
}

void keep_products(const std::vector<nlohmann::json>& sessions) {
  if (!sessions.empty()) nn::keep_products(sessions.back().at("environment"));
}

nlohmann::json environment_json(const nlohmann::json& facts, bool trains) {
  auto json = nn::to_json(nn::environment(trains));
  json.update({{"attnas", kVersion},
               {"revision", kRevision},
               {"compiler", __VERSION__},
               {"device", facts.value("device", "")}});
  if (auto plugins = plugins_record(); !plugins.empty()) json["plugins"] = std::move(plugins);
  for (const auto* of_gpu : {"device_model", "float32_products"}) {
    if (const auto fact = facts.find(of_gpu); fact != facts.end()) json[of_gpu] = *fact;
  }
  return json;
}

void warn_of_text(const Experiment& experiment, const nlohmann::json& facts) {
  if (facts.contains("table")) return;
  const auto shares = facts.value("unknown_shares", UnknownShares{});
  if (const auto text = unknown_warning(shares, experiment.data); !text.empty()) warn(text);
  if (experiment.corpus != "text_file") return;
  for (const auto& [one, other] : {std::pair{"train", "valid"}, {"train", "test"}}) {
    const auto& file = experiment.data.get<std::string>(other);
    std::error_code unknown;
    if (!file.empty() && fs::equivalent(experiment.data.get<std::string>(one), file, unknown)) {
      warn("data." + std::string(one) + " and data." + other + " are one text, " + file +
           ": what is learned by heart will look like skill");
    }
  }
  const auto batch = experiment.training.get<std::int64_t>("batch_size");
  for (const auto* split : {"train", "valid"}) {
    const auto windows = facts.value(std::string(split) + "_windows", batch);
    if (windows >= batch) continue;
    warn("the " + std::string(split) + " split has " + std::to_string(windows) + " windows of " +
         std::to_string(facts.value("context", std::int64_t{0})) +
         " tokens, fewer than a batch of training (training.batch_size = " + std::to_string(batch) +
         "): results say little");
  }
}

void warn_of_slow_blas() {
  const auto environment = nn::environment(/*products=*/false);
  if (!environment.slow_blas) return;
  warn("matrix products come from the reference BLAS (" + environment.blas_library +
       "), about 11 times slower than an OpenBLAS: apt-get install libopenblas0-openmp");
}

void record_baseline(const std::vector<Evaluation>& baseline, StudySetup& setup, Store& store) {
  const auto evaluations = pointers(baseline);
  set_ranges_from_baseline(setup.objectives, evaluations);
  store.set_meta("objectives", setup.objectives.record());
  store.set_meta("reference_point", kReferencePoint);
  if (baseline.empty()) return;
  std::vector<std::string> ids;
  for (const auto& evaluation : baseline) ids.push_back(evaluation.id);
  // As measured: what others are compared with may break a constraint.
  const auto judgement = setup.objectives.judge(evaluations);
  if (!is_usable(judgement.status)) {
    warn("the baseline " + setup.problem->label(baseline.front().candidate) + " is " +
         std::string(to_string(judgement.status)) + ": " + judgement.reason);
  }
  store.set_meta("baseline", {{"evaluations", ids},
                              {"fitness", judgement.measured.empty() ? judgement.fitness
                                                                     : judgement.measured}});
}

void measure_baseline(const Experiment& experiment, StudySetup& setup,
                      RecordingEvaluator& evaluator, Store& store) {
  if (const auto recorded = store.meta("objectives")) {
    set_recorded_ranges(setup.objectives, *recorded);
  }
  std::vector<Evaluation> baseline;
  if (!experiment.baseline.empty()) {
    baseline = evaluator.evaluate(setup.problem->parse(experiment.baseline));
  }
  record_baseline(baseline, setup, store);
}

}  // namespace nas
