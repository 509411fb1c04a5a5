#include "study/stages/tuning.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "core/seed.hpp"
#include "evaluation/settings.hpp"
#include "store/replicates.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;
using Numbers = std::vector<double>;

double three_digits(double value) {
  std::array<char, 32> text{};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value,
                                     std::chars_format::scientific, 2);
  std::from_chars(text.data(), written.ptr, value);
  return value;
}

double fraction(double value) { return value - std::floor(value); }

/// As many trials as the search had training runs, unless the configuration says how many.
Integer num_trials(const Experiment& experiment, Integer trained) {
  const auto trials = experiment.tuning->get<Integer>("trials");
  if (trials > 0) return trials;
  return std::max<Integer>(1, trained / experiment.evaluation.get<Integer>("replicates"));
}

/// Evaluations that the search's asks have caused and that were trained, not merely screened.
Integer num_trained(const RunSummary& run) {
  std::set<std::string> trained;
  for (const auto& ask : run.asks) {
    for (const auto& id : ask.evaluations) {
      if (run.by_id.at(id)->measured.contains("train_seconds")) trained.insert(id);
    }
  }
  return static_cast<Integer>(trained.size());
}

/// The objective that trials are selected by.
const ChosenObjective& selecting(const ObjectiveSet& set) {
  const auto& all = set.objectives;
  const auto trained =
      std::find_if(all.begin(), all.end(), [](const auto& o) { return o.needs_training(); });
  return trained == all.end() ? all.front() : *trained;
}

std::optional<double> value_of(const std::vector<Evaluation>& evaluations,
                               const ChosenObjective& objective) {
  for (const auto& evaluation : evaluations) {
    if (!is_usable(evaluation)) return std::nullopt;
  }
  const double value = objective.value(Objective::Evaluations(pointers(evaluations)));
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

void find_best(TunedMechanism& mechanism, const ChosenObjective& objective) {
  for (std::size_t i = 0; i < mechanism.trials.size(); ++i) {
    auto& trial = mechanism.trials[i];
    trial.value = value_of(trial.evaluations, objective);
    if (!trial.value) continue;
    if (!mechanism.best || objective.minimised(*trial.value) <
                               objective.minimised(*mechanism.trials[*mechanism.best].value)) {
      mechanism.best = i;
    }
  }
}

nlohmann::json record_of(const std::vector<TunedMechanism>& mechanisms, const Problem& problem) {
  auto record = nlohmann::json::array();
  for (const auto& mechanism : mechanisms) {
    auto trials = nlohmann::json::array();
    for (const auto& trial : mechanism.trials) {
      nlohmann::json ids = nlohmann::json::array();
      for (const auto& evaluation : trial.evaluations) ids.push_back(evaluation.id);
      trials.push_back({{"learning_rate", trial.point.learning_rate},
                        {"weight_decay", trial.point.weight_decay},
                        {"evaluations", ids},
                        {"value", trial.value ? nlohmann::json(*trial.value) : nlohmann::json()}});
    }
    record.push_back(
        {{"candidate", mechanism.candidate},
         {"label", problem.label(mechanism.candidate)},
         {"trials", trials},
         {"best", mechanism.best ? nlohmann::json(*mechanism.best) : nlohmann::json()}});
  }
  return record;
}

/// What record_of() has recorded; nothing if a training run of it is gone.
std::vector<TunedMechanism> read_record(const nlohmann::json& record, const Store& store) {
  std::vector<TunedMechanism> mechanisms;
  for (const auto& one : record) {
    auto& mechanism = mechanisms.emplace_back(
        TunedMechanism{.candidate = one.at("candidate").get<std::string>(), .trials = {}});
    for (const auto& tried : one.at("trials")) {
      TuningTrial trial{.point = {.learning_rate = tried.at("learning_rate").get<double>(),
                                  .weight_decay = tried.at("weight_decay").get<double>()},
                        .evaluations = {}};
      for (const auto& id : tried.at("evaluations")) {
        auto evaluation = store.find(id.get<std::string>());
        if (!evaluation) return {};
        trial.evaluations.push_back(std::move(*evaluation));
      }
      if (tried.at("value").is_number()) trial.value = tried.at("value").get<double>();
      mechanism.trials.push_back(std::move(trial));
    }
    if (one.at("best").is_number()) mechanism.best = one.at("best").get<std::size_t>();
  }
  return mechanisms;
}

/// Whether a recorded tuning is of the baseline and the best that the search finds now.
bool is_tuning_of_best(const nlohmann::json& tuning, const RunSummary& run,
                       const std::string& baseline) {
  std::vector<std::string> recorded;
  for (const auto& one : tuning) recorded.push_back(one.at("candidate"));
  std::vector<std::string> now{baseline};
  const auto winners = recorded.empty() ? 0 : recorded.size() - 1;
  for (const auto* winner : best_candidates(run, winners, baseline)) {
    now.push_back(winner->candidate);
  }
  return recorded == now;
}

/// Adds what a recorded tuning has tried: trials come to a result, none is taken away.
/// @return how many.
std::size_t add_recorded(const nlohmann::json& tuning, std::vector<TuningPoint>& points) {
  const auto asked = points.size();
  for (const auto& one : tuning) {
    for (const auto& tried : one.at("trials")) {
      const TuningPoint point{.learning_rate = tried.at("learning_rate").get<double>(),
                              .weight_decay = tried.at("weight_decay").get<double>()};
      if (std::find(points.begin(), points.end(), point) == points.end()) points.push_back(point);
    }
  }
  return points.size() - asked;
}

}  // namespace

std::vector<TuningPoint> tuning_points(const Parameters& tuning, const Parameters& training,
                                       std::uint64_t seed, std::int64_t trials) {
  constexpr double kPlastic = 1.32471795724474602596;  // the real root of x^3 = x + 1
  const auto& range = tuning.get<Numbers>("learning_rate");
  const auto& decays = tuning.get<Numbers>("weight_decay");
  const double lowest = std::log(range.front());
  const double highest = std::log(range.back());
  RandomEngine random(derive_seed(seed, 0, "tuning", 0));
  const double rate_start = random.uniform();
  const double decay_start = random.uniform();
  std::vector<TuningPoint> points{{.learning_rate = training.get<double>("learning_rate"),
                                   .weight_decay = training.get<double>("weight_decay")}};
  for (Integer i = 1; i < trials; ++i) {
    const auto n = static_cast<double>(i);
    const double rate = fraction(rate_start + n / kPlastic);
    const double decay = fraction(decay_start + n / (kPlastic * kPlastic));
    const auto choice = static_cast<std::size_t>(decay * static_cast<double>(decays.size()));
    points.push_back(
        {.learning_rate = std::clamp(three_digits(std::exp(lowest + rate * (highest - lowest))),
                                     range.front(), range.back()),
         .weight_decay = decays[std::min(choice, decays.size() - 1)]});
  }
  return points;
}

Parameters tuned_training(const Parameters& training, const TuningPoint& point) {
  auto tuned = training;
  tuned.set("learning_rate", point.learning_rate);
  tuned.set("weight_decay", point.weight_decay);
  return tuned;
}

std::vector<TunedMechanism> tune(const FurtherWork& work) {
  const auto& [experiment, objectives, problem, store, observer, executor, recall] = work;
  const auto recorded = store.meta("tuning").value_or(nullptr);
  if (!experiment.tuning && !recorded.is_array()) return {};
  const RunSummary run(store);
  if (!experiment.tuning) {
    if (is_tuning_of_best(recorded, run, problem.parse(experiment.baseline).name)) {
      return read_record(recorded, store);
    }
    store.set_meta("tuning", nullptr);  // it is not shown beside another result
    observer.warned("the search has found others since their tuning, which is therefore not shown");
    return {};
  }
  auto points = tuning_points(*experiment.tuning, experiment.training, experiment.seed,
                              num_trials(experiment, num_trained(run)));
  const auto baseline = problem.parse(experiment.baseline).name;
  if (recorded.is_array() && is_tuning_of_best(recorded, run, baseline)) {
    if (const auto others = add_recorded(recorded, points); others > 0) {
      observer.warned("of each " + std::to_string(others) +
                      " more trials are recorded than baseline.tune asks for: all count");
    }
  }
  std::vector<TunedMechanism> mechanisms{{.candidate = baseline, .trials = {}}};
  const auto winners = static_cast<std::size_t>(experiment.tuning->get<Integer>("winners"));
  for (const auto* winner : best_candidates(run, winners, baseline)) {
    mechanisms.push_back({.candidate = winner->candidate, .trials = {}});
  }
  // What there is of the same mechanisms stays until there is more of it.
  if (recorded.is_array() &&
      (recorded.size() != mechanisms.size() || !is_tuning_of_best(recorded, run, baseline))) {
    store.set_meta("tuning", nullptr);
  }

  std::vector<std::shared_ptr<Problem>> variants;
  for (const auto& point : points) {
    variants.push_back(further_problem(problem, tuned_training(experiment.training, point), run));
  }
  const auto replicates = experiment.evaluation.get<Integer>("replicates");
  std::vector<FurtherTraining> trainings;
  for (const auto& mechanism : mechanisms) {
    const auto candidate = problem.parse(mechanism.candidate);
    for (const auto& variant : variants) {
      trainings.push_back({variant, candidate, replicates_from(0, replicates)});
    }
  }
  train_further(trainings, work, "tuning");
  auto next = trainings.begin();
  for (auto& mechanism : mechanisms) {
    for (const auto& point : points) {
      mechanism.trials.push_back({.point = point, .evaluations = std::move(next++->evaluations)});
    }
    find_best(mechanism, selecting(objectives));
  }
  store.set_meta("tuning", record_of(mechanisms, problem));
  return mechanisms;
}

TuningPlan tuning_plan(const Experiment& experiment, std::int64_t trained, std::int64_t found) {
  if (!experiment.tuning) return {};
  const auto trials = num_trials(experiment, trained);
  const auto winners = std::min(found, experiment.tuning->get<Integer>("winners"));
  const auto replicates = experiment.evaluation.get<Integer>("replicates");
  return {.text = std::to_string(trials) + " trials for the baseline" +
                  (winners > 0 ? " and each of the best " + std::to_string(winners) : "") + ": " +
                  std::to_string(trials * (1 + winners) * replicates) + " training runs",
          .trainings = trials * (1 + winners) * replicates};
}

}  // namespace nas
