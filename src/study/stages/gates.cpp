#include "study/stages/gates.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/version.hpp"
#include "report/json_number.hpp"
#include "report/text.hpp"
#include "report/verdict.hpp"
#include "store/replicates.hpp"
#include "study/session/session.hpp"

namespace nas {

namespace {

using Numbers = std::vector<double>;

constexpr double kLevel = 0.05;
/// Perplexity, and share of wrong answers.
constexpr double kSolved = 1.02, kSolvedErrors = 0.02;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

bool whole(const Numbers& values) {
  return !values.empty() && std::all_of(values.begin(), values.end(),
                                        [](double value) { return std::isfinite(value); });
}

/// Of the seeds that did not fail.
Numbers known(const Numbers& values) {
  Numbers finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
               [](double value) { return std::isfinite(value); });
  return finite;
}

/// A pilot's value as people read it: exp of a mean nll, or the share of right answers.
double natural(Measure measure, double value) {
  return measure == Measure::accuracy ? 1.0 - value : std::exp(value);
}
double from_natural(Measure measure, double value) {
  return measure == Measure::accuracy ? 1.0 - value : std::log(value);
}

/// "8.65 (8.60 to 8.71)".
std::string mean_text(Measure measure, const Numbers& values) {
  const auto finite = known(values);
  if (finite.empty()) return "no value, since every seed failed";
  const double most =
      measure == Measure::accuracy ? 1.0 : std::numeric_limits<double>::infinity();  // nats
  const auto mean = within(0.0, most, estimate(finite));
  auto text = number_text(natural(measure, mean.mean));
  if (finite.size() > 1) {
    const auto [low, high] = std::minmax({natural(measure, mean.low), natural(measure, mean.high)});
    text += " (" + number_text(low) + " to " + number_text(high) + ")";
  }
  return text;
}

/// On the seeds that both have.
std::optional<PairedComparison> compared(const PilotModel& model, const PilotModel& other) {
  Numbers a;
  Numbers b;
  for (std::size_t i = 0; i < std::min(model.judged.size(), other.judged.size()); ++i) {
    if (!std::isfinite(model.judged[i]) || !std::isfinite(other.judged[i])) continue;
    a.push_back(model.judged[i]);
    b.push_back(other.judged[i]);
  }
  if (a.size() < 2) return std::nullopt;
  return compare_paired(a, b);
}

const PilotModel* find(const std::vector<PilotModel>& models, const std::string& name) {
  const auto found = std::find_if(models.begin(), models.end(),
                                  [&](const PilotModel& model) { return model.name == name; });
  return found == models.end() ? nullptr : &*found;
}

std::string window_name(std::int64_t window) { return "window " + std::to_string(window); }

std::string p_text(double p) { return p < 0.001 ? "p < 0.001" : "p " + fixed_text(p, 3); }

/// Attention against a control, from a comparison whose p is corrected.
Gate against(Measure measure, const PilotModel& baseline, const PilotModel& control,
             const PairedComparison& found) {
  Gate gate{.name = "better than " + control.name, .words = {}};
  gate.passed = found.difference.mean < 0.0 && found.p < kLevel;
  gate.words = to_string(measure) + ' ' + mean_text(measure, baseline.judged) + " against " +
               mean_text(measure, control.judged) + ", n = " + std::to_string(found.difference.n) +
               ", " + p_text(found.p);
  return gate;
}

void add_controls(const std::vector<PilotModel>& models, GatesOutcome& outcome) {
  const auto& baseline = models.front();
  std::vector<const PilotModel*> controls;
  std::vector<std::string> names{"no mixer"};
  for (const auto window : kGateWindows) names.push_back(window_name(window));
  for (const auto& name : names) {
    if (const auto* control = find(models, name)) controls.push_back(control);
  }
  Numbers p_values;
  std::vector<PairedComparison> found;
  for (const auto* control : controls) {
    // A control of which no two seeds can be compared proves nothing.
    found.push_back(compared(baseline, *control).value_or(PairedComparison{}));
    p_values.push_back(found.back().p);
  }
  const auto corrected = holm(p_values);
  for (std::size_t i = 0; i < controls.size(); ++i) {
    found[i].p = corrected[i];
    outcome.comparisons.emplace_back(controls[i]->name, found[i]);
    outcome.gates.push_back(against(outcome.measure, baseline, *controls[i], found[i]));
  }
  for (const auto window : kReportedWindows) {
    const auto* control = find(models, window_name(window));
    if (control == nullptr) continue;
    if (const auto one = compared(baseline, *control)) {
      outcome.comparisons.emplace_back(control->name, *one);
    }
  }
}

void add_counts(const PilotModel& baseline, const nlohmann::json& counts, GatesOutcome& outcome) {
  const auto measure = outcome.measure;
  const auto best = best_counts(counts, measure);
  if (!best) return;
  const double limit = from_natural(measure, best->value);
  const auto values = known(baseline.judged);
  Gate gate{.name = "better than counts", .words = {}};
  if (!values.empty()) {
    const auto mean = estimate(values);
    gate.passed = mean.mean < limit && (values.size() < 2 || mean.high < limit);
  }
  gate.words = to_string(measure) + ' ' + mean_text(measure, baseline.judged) + " against " +
               number_text(best->value) + " of counts of order " + std::to_string(best->order);
  outcome.gates.push_back(std::move(gate));
}

void add_rates(const PilotModel& baseline, double own_rate, GatesOutcome& outcome) {
  if (baseline.rates.empty()) return;
  const auto best = best_rate(baseline);
  const auto& rates = baseline.rates;
  const auto range = shortest(rates.front()) + " to " + shortest(rates.back());
  outcome.gates.push_back(
      {.name = "best rate inside",
       .passed = best > 0 && best + 1 < rates.size(),
       .words = "the baseline's best learning rate is " + shortest(rates[best]) + " of " + range});
  const auto own = std::find(rates.begin(), rates.end(), own_rate);
  if (own == rates.end()) return;
  const auto& of_own = baseline.tuning[static_cast<std::size_t>(own - rates.begin())];
  Gate gate{.name = "own rate", .passed = true, .words = {}};
  const auto measure = outcome.measure;
  gate.words = "learning rate " + shortest(own_rate) + ": " + to_string(measure) + ' ' +
               mean_text(measure, of_own);
  if (*own != rates[best]) {
    const auto& of_best = baseline.tuning[best];
    gate.words += ", at " + shortest(rates[best]) + " " + mean_text(measure, of_best);
    gate.passed = whole(of_own) || !whole(of_best);
    if (whole(of_own) && whole(of_best) && of_own.size() > 1) {
      const auto found = compare_paired(of_own, of_best);
      gate.passed = found.p >= kLevel;
      gate.words += ", " + p_text(found.p);
    }
  }
  outcome.gates.push_back(std::move(gate));
}

void count_failures(const std::vector<PilotModel>& models, GatesOutcome& outcome) {
  const auto& baseline = models.front();
  auto seeds = baseline.judged;
  if (!baseline.rates.empty()) {
    const auto& chosen = baseline.tuning[best_rate(baseline)];
    seeds.insert(seeds.end(), chosen.begin(), chosen.end());
  }
  outcome.seeds = std::ssize(seeds);
  double limit = std::numeric_limits<double>::infinity();
  const auto* bare = find(models, "no mixer");
  const auto values = known(seeds);
  if (bare != nullptr && !outcome.gates.empty() && outcome.gates.front().passed &&
      !values.empty() && !known(bare->judged).empty()) {
    limit = 0.5 * (median(values) + estimate(known(bare->judged)).mean);
  }
  outcome.failed_seeds = std::count_if(seeds.begin(), seeds.end(), [limit](double value) {
    return !std::isfinite(value) || value > limit;
  });
  outcome.bimodal = 20 * outcome.failed_seeds > outcome.seeds;
  const double most = outcome.measure == Measure::accuracy ? kSolvedErrors : std::log(kSolved);
  outcome.solved = whole(seeds) && *std::max_element(seeds.begin(), seeds.end()) < most;
}

/// Mean nll in nats, or the share of right answers.
nlohmann::json numbers_json(Measure measure, const Numbers& values) {
  auto json = nlohmann::json::array();
  for (const double value : values) {
    json.push_back(json_number(measure == Measure::accuracy ? 1.0 - value : value));
  }
  return json;
}

/// Each model with what its rates, and its judging seeds, have.
nlohmann::json models_json(Measure measure, const std::vector<PilotModel>& models) {
  const std::string value = measure == Measure::accuracy ? "accuracy" : "nll";
  auto list = nlohmann::json::array();
  for (const auto& model : models) {
    auto tuning = nlohmann::json::array();
    for (std::size_t i = 0; i < model.rates.size(); ++i) {
      tuning.push_back({{"learning_rate", model.rates[i]},
                        {"valid_" + value, numbers_json(measure, model.tuning[i])}});
    }
    list.push_back({{"name", model.name},
                    {"candidate", model.candidate},
                    {"tuning", tuning},
                    {"learning_rate", model.rate},
                    {"valid_" + value, numbers_json(measure, model.judged)},
                    {"test_" + value, numbers_json(measure, model.test)}});
  }
  return list;
}

nlohmann::json record_of(const std::vector<PilotModel>& models, const GatesOutcome& outcome,
                         const nlohmann::json& counts) {
  nlohmann::json record{{"schema", 1},
                        {"passed", outcome.passed()},
                        {"bimodal", outcome.bimodal},
                        {"solved", outcome.solved},
                        {"failed_seeds", outcome.failed_seeds},
                        {"seeds", outcome.seeds},
                        {"verdict", outcome.verdict()},
                        {"gates", nlohmann::json::array()},
                        {"comparisons", nlohmann::json::array()},
                        {"models", models_json(outcome.measure, models)},
                        {"count_models", counts}};
  if (outcome.measure != Measure::perplexity) record["measure"] = to_string(outcome.measure);
  for (const auto& gate : outcome.gates) {
    record["gates"].push_back(
        {{"name", gate.name}, {"passed", gate.passed}, {"words", gate.words}});
  }
  for (const auto& [name, found] : outcome.comparisons) {
    record["comparisons"].push_back({{"control", name},
                                     {"difference", json_number(found.difference.mean)},
                                     {"low", json_number(found.difference.low)},
                                     {"high", json_number(found.difference.high)},
                                     {"p", json_number(found.p)},
                                     {"n", found.difference.n}});
  }
  return record;
}

/// What a model is judged by: see PilotModel.
double valid_value(Measure measure, const Evaluation& evaluation) {
  if (!is_usable(evaluation) || evaluation.curve.empty()) return kNone;
  const auto& valid = evaluation.curve.back().valid;
  if (valid.tokens <= 0) return kNone;
  return measure == Measure::accuracy ? 1.0 - valid.accuracy()
                                      : valid.nll / static_cast<double>(valid.tokens);
}

double test_value(Measure measure, const Evaluation& evaluation) {
  if (!is_usable(evaluation)) return kNone;
  if (measure == Measure::accuracy) return 1.0 - test_scores(evaluation).accuracy();
  const auto found = evaluation.values.find("test_nll");
  return found != evaluation.values.end() ? found->second : kNone;
}

/// What a pilot trains: models at rates of their own, the baseline first, and those at the baseline's.
struct PilotModels {
  std::vector<PilotModel> tuned, reported;
};

PilotModels pilot_models(const Experiment& experiment, const Problem& problem) {
  PilotModels models;
  models.tuned.push_back(
      {.name = "baseline", .candidate = problem.parse(experiment.baseline).name});
  for (const auto& control :
       controls_of(experiment, problem, {std::begin(kGateWindows), std::end(kGateWindows)})) {
    models.tuned.push_back({.name = control.name, .candidate = control.candidate.name});
  }
  for (const auto& control : controls_of(
           experiment, problem, {std::begin(kReportedWindows), std::end(kReportedWindows)})) {
    if (find(models.tuned, control.name) != nullptr) continue;
    models.reported.push_back({.name = control.name, .candidate = control.candidate.name});
  }
  return models;
}

/// Problems that differ in their learning rate.
class Rates {
 public:
  explicit Rates(const FurtherWork& work) : work_(work) {}

  std::shared_ptr<Problem> at(double rate, bool score_test) {
    auto& problem = problems_[{rate, score_test}];
    if (!problem) {
      auto training = work_.experiment.training;
      training.set("learning_rate", rate);
      training.set("score_test", score_test);
      training.set("early_stop_after", std::int64_t{0});
      problem = work_.problem.with_training(training);
    }
    return problem;
  }

 private:
  const FurtherWork& work_;
  std::map<std::pair<double, bool>, std::shared_ptr<Problem>> problems_;
};

void choose_rates(const FurtherWork& work, Rates& rates, std::vector<PilotModel>& models) {
  const auto measure = measure_of(work.objectives);
  const auto own = work.experiment.training.get<double>("learning_rate");
  std::vector<FurtherTraining> trainings;
  for (auto& model : models) {
    for (const double factor : kGateRates) {
      model.rates.push_back(factor * own);
      trainings.push_back({rates.at(model.rates.back(), false), work.problem.parse(model.candidate),
                           replicates_from(0, kGateTuningSeeds)});
    }
  }
  train_further(trainings, work, "learning rates");
  auto next = trainings.begin();
  for (auto& model : models) {
    for (std::size_t i = 0; i < model.rates.size(); ++i) {
      auto& values = model.tuning.emplace_back();
      for (const auto& evaluation : next++->evaluations) {
        values.push_back(valid_value(measure, evaluation));
      }
    }
    model.rate = model.rates[best_rate(model)];
  }
}

void judge_models(const FurtherWork& work, Rates& rates, std::vector<PilotModel>& models) {
  const auto measure = measure_of(work.objectives);
  std::vector<FurtherTraining> trainings;
  for (const auto& model : models) {
    trainings.push_back({rates.at(model.rate, true), work.problem.parse(model.candidate),
                         replicates_from(kFirstHeldOutReplicate, kGateSeeds)});
  }
  train_further(trainings, work, "gates");
  auto next = trainings.begin();
  for (auto& model : models) {
    for (const auto& evaluation : next++->evaluations) {
      model.judged.push_back(valid_value(measure, evaluation));
      model.test.push_back(test_value(measure, evaluation));
    }
  }
}

}  // namespace

std::size_t best_rate(const PilotModel& model) {
  const auto mean = [](const Numbers& values) {
    return whole(values) ? estimate(values).mean : std::numeric_limits<double>::infinity();
  };
  const auto best =
      std::min_element(model.tuning.begin(), model.tuning.end(),
                       [&](const Numbers& a, const Numbers& b) { return mean(a) < mean(b); });
  return static_cast<std::size_t>(best - model.tuning.begin());
}

bool GatesOutcome::passed() const {
  return std::all_of(gates.begin(), gates.end(), [](const Gate& gate) { return gate.passed; });
}

std::string GatesOutcome::verdict() const {
  std::vector<std::string> failed;
  bool behind = false;
  for (const auto& gate : gates) {
    if (gate.passed) continue;
    failed.push_back(gate.name);
    behind = behind || gate.name.rfind("better than ", 0) == 0;
  }
  auto text = failed.empty() ? std::string("Attention matters on this task: all gates are passed.")
                             : "Not passed: " + join(failed) + ".";
  if (behind) {
    text += " What is compared on this task says little of attention.";
  } else if (!failed.empty()) {
    text += " Attention matters on this task, but its learning rate is not known to be a good one.";
  }
  for (const auto& [name, found] : comparisons) {
    const bool reported = std::none_of(
        gates.begin(), gates.end(),
        [&name = name](const Gate& gate) { return gate.name == "better than " + name; });
    if (!reported) continue;
    text += " Attention is " +
            std::string(found.difference.mean < 0.0 && found.p < kLevel ? "better than "
                        : found.p < kLevel                              ? "worse than "
                                           : "not shown to differ from ") +
            name + " (" + p_text(found.p) + ").";
  }
  if (bimodal) {
    text += " The task is bimodal: " + std::to_string(failed_seeds) + " of " +
            std::to_string(seeds) +
            " seeds of the baseline fail. Judge by success rates beside means.";
  }
  if (solved) {
    text += std::string(" It is solved: every seed of the baseline has ") +
            (measure == Measure::accuracy ? "an accuracy above 0.98." : "a perplexity below 1.02.");
  }
  return text;
}

GatesOutcome judge_gates(const std::vector<PilotModel>& models, const nlohmann::json& counts,
                         double own_rate, Measure measure) {
  GatesOutcome outcome{.measure = measure};
  add_controls(models, outcome);
  add_counts(models.front(), counts, outcome);
  add_rates(models.front(), own_rate, outcome);
  count_failures(models, outcome);
  return outcome;
}

nlohmann::json train_gates(const FurtherWork& work) {
  const auto& experiment = work.experiment;
  auto [models, reported] = pilot_models(experiment, work.problem);
  Rates rates(work);
  choose_rates(work, rates, models);
  for (auto& model : reported) model.rate = models.front().rate;
  std::move(reported.begin(), reported.end(), std::back_inserter(models));
  judge_models(work, rates, models);
  const auto counts = work.problem.counts();
  const auto outcome = judge_gates(models, counts, experiment.training.get<double>("learning_rate"),
                                   measure_of(work.objectives));
  auto record = record_of(models, outcome, counts);
  record["config"] = experiment.resolved;
  record["identity"] = work.problem.identity();
  record["corpus_hash"] = record["identity"].value("corpus_hash", "");
  record["revision"] = kRevision;
  work.store.set_meta("gates", record);
  return record;
}

GatesPlan plan_gates(const Experiment& experiment) {
  const auto problem = make_problem(experiment, experiment.objectives, {});
  const auto controls = controls_of(experiment, *problem, {kGateWindows[0]});
  if (controls.empty()) {
    throw InputError("gates: the problem " + experiment.problem +
                     " trains no baseline, must be one that does");
  }
  nlohmann::json listed;
  for (const auto& control : controls) listed.push_back(control.candidate.name);
  const auto models = pilot_models(experiment, *problem);
  const auto names = [](const std::vector<PilotModel>& of) {
    std::vector<std::string> all;
    for (const auto& model : of) all.push_back(model.name);
    return join(all);
  };
  const auto rates = std::ssize(kGateRates);
  const auto judged = std::ssize(models.tuned) + std::ssize(models.reported);
  const auto trainings = std::ssize(models.tuned) * rates * kGateTuningSeeds + judged * kGateSeeds;
  auto text = std::to_string(trainings) + " training runs: " + names(models.tuned) + " with " +
              std::to_string(rates) + " learning rates and " + std::to_string(kGateTuningSeeds) +
              " seeds each; then each at its best rate";
  if (!models.reported.empty()) text += ", and " + names(models.reported) + " at the baseline's,";
  text += " with " + std::to_string(kGateSeeds) + " other seeds, judged by " +
          to_string(measure_of(experiment.objectives)) + " on the validation split";
  return {
      .overrides = {"mechanisms=" + listed.dump(), "controls=false",
                    "retest.replicates=" + std::to_string(kGateSeeds), "evaluation.keep_models=0"},
      .trainings = trainings,
      .text = std::move(text)};
}

}  // namespace nas
