#include "study/stages/gates.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/version.hpp"
#include "report/json_number.hpp"
#include "report/text.hpp"
#include "report/verdict.hpp"
#include "statistics/failures.hpp"
#include "store/replicates.hpp"
#include "study/session/session.hpp"
#include "study/session/set_up.hpp"

namespace nas {

namespace {

using Numbers = std::vector<double>;

constexpr double kLevel = 0.05;

bool whole(const Numbers& values) {
  return !values.empty() && std::all_of(values.begin(), values.end(),
                                        [](double value) { return std::isfinite(value); });
}

/// A pilot's value as people read it: exp of a mean nll, or the share of right answers.
double natural(Measure measure, double value) {
  return measure == Measure::accuracy ? 1.0 - value : std::exp(value);
}
double from_natural(Measure measure, double value) {
  return measure == Measure::accuracy ? 1.0 - value : std::log(value);
}

/// "1", "2.59".
std::string best_text(Measure measure, double least) {
  return least == 0.0 ? "1" : number_text(natural(measure, least));
}

/// "8.65 (8.60 to 8.71)".
std::string mean_text(Measure measure, const Numbers& values) {
  const auto finite = finite_of(values);
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

/// Those that attention must be better than.
std::vector<std::string> gate_controls() {
  std::vector<std::string> names{"no mixer"};
  for (const auto window : kGateWindows) names.push_back(window_name(window));
  return names;
}

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
  for (const auto& name : gate_controls()) {
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
  const auto values = finite_of(baseline.judged);
  Gate gate{.name = "better than counts", .words = {}};
  if (!values.empty()) {
    const auto mean = estimate(values);
    gate.passed = mean.mean < limit && (values.size() < 2 || mean.high < limit);
  }
  gate.words = to_string(measure) + ' ' + mean_text(measure, baseline.judged) + " against " +
               number_text(best->value) + " of counts of order " + std::to_string(best->order);
  outcome.gates.push_back(std::move(gate));
}

std::string rate_gate(const std::string& model) {
  return model == "baseline" ? "best rate inside" : "best rate of " + model + " inside";
}

/// By how much a best rate at an end is better than its neighbour, as a share of what the model is
/// behind the baseline; infinite where it is not behind.
double gained_at_end(const PilotModel& model, const PilotModel& baseline) {
  const auto& tried = model.tuned.tried;
  const bool first = model.tuned.rate == tried.front().first;
  const auto& best = (first ? tried.front() : tried.back()).second;
  const auto& next = (first ? tried[1] : tried[tried.size() - 2]).second;
  const auto judged = finite_of(model.judged);
  const auto rival = finite_of(baseline.judged);
  if (!whole(best) || !whole(next) || judged.empty() || rival.empty()) {
    return std::numeric_limits<double>::infinity();
  }
  const double behind = estimate(judged).mean - estimate(rival).mean;
  const double gained = estimate(next).mean - estimate(best).mean;
  return behind > 0.0 ? gained / behind : std::numeric_limits<double>::infinity();
}

/// Whether a model's best rate has worse ones on both sides, or no further one could bring a control
/// near the baseline: what guesses does so at any rate.
void add_best_rate(const PilotModel& model, const PilotModel& baseline, GatesOutcome& outcome) {
  constexpr double kNothing = 0.05;
  const auto& [rate, at_end, tried] = model.tuned;
  if (tried.empty()) return;
  const bool own = model.name == "baseline";
  const bool flat =
      at_end && !own && tried.size() > 1 && gained_at_end(model, baseline) <= kNothing;
  outcome.gates.push_back(
      {.name = rate_gate(model.name),
       .passed = !at_end || flat,
       .words = "the best learning rate of " + (own ? "the baseline" : model.name) + " is " +
                shortest(rate) + " of " + shortest(tried.front().first) + " to " +
                shortest(tried.back().first) + (flat ? ", where it matters little" : "")});
}

void add_own_rate(const PilotModel& baseline, double own_rate, GatesOutcome& outcome) {
  const auto& tried = baseline.tuned.tried;
  const auto at = [&tried](double rate) {
    return std::find_if(tried.begin(), tried.end(),
                        [rate](const auto& one) { return one.first == rate; });
  };
  const auto own = at(own_rate);
  if (own == tried.end()) return;
  const auto& of_own = own->second;
  Gate gate{.name = "own rate", .passed = true, .words = {}};
  const auto measure = outcome.measure;
  gate.words = "learning rate " + shortest(own_rate) + ": " + to_string(measure) + ' ' +
               mean_text(measure, of_own);
  if (own_rate != baseline.tuned.rate) {
    const auto& of_best = at(baseline.tuned.rate)->second;
    gate.words += ", at " + shortest(baseline.tuned.rate) + " " + mean_text(measure, of_best);
    gate.passed = whole(of_own) || !whole(of_best);
    if (whole(of_own) && whole(of_best) && of_own.size() > 1) {
      const auto found = compare_paired(of_own, of_best);
      gate.passed = found.p >= kLevel;
      gate.words += ", " + p_text(found.p);
    }
  }
  outcome.gates.push_back(std::move(gate));
}

/// Whether a mechanism could be better: see judge_gates().
void add_room(const PilotModel& baseline, GatesOutcome& outcome) {
  const auto measure = outcome.measure;
  const auto values = finite_of(baseline.judged);
  const double line = outcome.least + (measure == Measure::accuracy ? kRoom : std::log1p(kRoom));
  Gate gate{.name = "room", .words = {}};
  gate.passed = 5 * outcome.failed_seeds >= outcome.seeds ||
                (values.size() > 1 && estimate(values).low >= line);
  gate.words = to_string(measure) + ' ' + mean_text(measure, baseline.judged) + ", at best " +
               best_text(measure, outcome.least) + (gate.passed ? "" : ": no improvement is left");
  outcome.gates.push_back(std::move(gate));
}

void count_failures(const std::vector<PilotModel>& models, GatesOutcome& outcome) {
  const auto& baseline = models.front();
  auto seeds = baseline.judged;
  for (const auto& [rate, chosen] : baseline.tuned.tried) {
    if (rate == baseline.tuned.rate) seeds.insert(seeds.end(), chosen.begin(), chosen.end());
  }
  outcome.seeds = std::ssize(seeds);
  double plateau = std::numeric_limits<double>::infinity();
  for (const auto& name : gate_controls()) {
    const auto* control = find(models, name);
    if (control == nullptr || finite_of(control->judged).empty()) continue;
    const auto values = finite_of(control->judged);
    plateau = std::min(plateau, *std::max_element(values.begin(), values.end()));
  }
  const auto failures = failures_of({seeds}, plateau);
  outcome.failed_seeds = std::count_if(seeds.begin(), seeds.end(),
                                       [&](double value) { return failures.fails(value); });
  outcome.bimodal = 20 * outcome.failed_seeds > outcome.seeds;
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
    list.push_back({{"name", model.name},
                    {"candidate", model.candidate},
                    {"tuning", to_json(measure, model.tuned).at("rates")},
                    {"learning_rate", model.tuned.rate},
                    {"valid_" + value, numbers_json(measure, model.judged)},
                    {"test_" + value, numbers_json(measure, model.test)}});
  }
  return list;
}

nlohmann::json record_of(const std::vector<PilotModel>& models, const GatesOutcome& outcome,
                         const nlohmann::json& counts) {
  nlohmann::json record{{"schema", 2},
                        {"passed", outcome.passed()},
                        {"bimodal", outcome.bimodal},
                        {"failed_seeds", outcome.failed_seeds},
                        {"seeds", outcome.seeds},
                        {"verdict", outcome.verdict()},
                        {"gates", nlohmann::json::array()},
                        {"comparisons", nlohmann::json::array()},
                        {"models", models_json(outcome.measure, models)},
                        {"count_models", counts}};
  if (outcome.least > 0.0) record["least_nll"] = outcome.least;
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

double test_value(Measure measure, const Evaluation& evaluation) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (!is_usable(evaluation)) return kNone;
  if (measure == Measure::accuracy) return 1.0 - test_scores(evaluation).accuracy();
  const auto found = evaluation.values.find("test_nll");
  return found != evaluation.values.end() ? found->second : kNone;
}

/// What a pilot trains, the baseline first.
std::vector<PilotModel> pilot_models(const Experiment& experiment, const Problem& problem) {
  std::vector<PilotModel> models{
      {.name = "baseline", .candidate = problem.parse(experiment.baseline).name}};
  std::vector<std::int64_t> windows(std::begin(kGateWindows), std::end(kGateWindows));
  windows.insert(windows.end(), std::begin(kReportedWindows), std::end(kReportedWindows));
  for (const auto& control : controls_of(experiment, problem, windows)) {
    models.push_back({.name = control.name, .candidate = control.candidate.name});
  }
  return models;
}

void judge_models(const StageWork& work, Rates& rates, std::vector<PilotModel>& models) {
  const auto measure = measure_of(work.setup.objectives);
  std::vector<FurtherTraining> trainings;
  for (const auto& model : models) {
    trainings.push_back({rates.at(model.tuned.rate, true),
                         work.setup.problem->parse(model.candidate),
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

bool GatesOutcome::passed() const {
  return std::all_of(gates.begin(), gates.end(), [](const Gate& gate) { return gate.passed; });
}

std::string GatesOutcome::verdict() const {
  std::vector<std::string> failed;
  bool behind = false;
  bool at_best = false;
  for (const auto& gate : gates) {
    if (gate.passed) continue;
    failed.push_back(gate.name);
    behind = behind || gate.name.rfind("better than ", 0) == 0;
    at_best = at_best || gate.name == "room";
  }
  auto text = failed.empty() ? std::string("Attention matters on this task: all gates are passed.")
                             : "Not passed: " + join(failed) + ".";
  if (behind) {
    text += " What is compared on this task says little of attention.";
  } else if (failed.size() > (at_best ? 1U : 0U)) {
    text +=
        " Attention matters on this task, but not all learning rates are known to be good ones.";
  }
  if (at_best) {
    text += " The baseline is close to the best possible " + to_string(measure) + ", " +
            best_text(measure, least) + ", and no improvement is left.";
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
  return text;
}

GatesOutcome judge_gates(const std::vector<PilotModel>& models, const nlohmann::json& counts,
                         double own_rate, Measure measure, double least) {
  GatesOutcome outcome{.measure = measure, .least = least};
  add_controls(models, outcome);
  add_counts(models.front(), counts, outcome);
  for (const auto& model : models) add_best_rate(model, models.front(), outcome);
  add_own_rate(models.front(), own_rate, outcome);
  count_failures(models, outcome);
  add_room(models.front(), outcome);
  return outcome;
}

nlohmann::json train_gates(const StageWork& work) {
  const auto& experiment = work.experiment;
  auto models = pilot_models(experiment, *work.setup.problem);
  Rates rates(work);
  std::vector<Candidate> candidates;
  for (const auto& model : models) candidates.push_back(work.setup.problem->parse(model.candidate));
  const auto found = find_rates(
      work, rates, candidates, rates.own(),
      {.factors = {std::begin(kGateRates), std::end(kGateRates)}, .seeds = kGateTuningSeeds});
  for (auto& model : models) model.tuned = found.at(model.candidate);
  judge_models(work, rates, models);
  const auto counts = work.setup.problem->counts();
  const auto measure = measure_of(work.setup.objectives);
  const double least =
      measure == Measure::perplexity ? work.setup.problem->facts().value("least_nll", 0.0) : 0.0;
  const auto outcome = judge_gates(models, counts, rates.own(), measure, least);
  auto record = record_of(models, outcome, counts);
  record["config"] = experiment.resolved;
  record["identity"] = work.setup.problem->identity();
  record["corpus_hash"] = record["identity"].value("corpus_hash", "");
  record["revision"] = kRevision;
  work.store.set_meta("gates", record);
  return record;
}

std::string rates_text(const nlohmann::json& record) {
  std::vector<std::string> rates;
  for (const auto& model : record.at("models")) {
    const auto name = model.at("name").get<std::string>();
    const auto& gates = record.at("gates");
    const bool known = std::any_of(gates.begin(), gates.end(), [&](const auto& gate) {
      return gate.at("name") == rate_gate(name) && gate.at("passed");
    });
    if (known) rates.push_back(name + ' ' + shortest(model.at("learning_rate").get<double>()));
  }
  return "rates: [" + join(rates) + "]";
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
  std::vector<std::string> names;
  for (const auto& model : models) names.push_back(model.name);
  const auto rates = std::ssize(kGateRates);
  const auto trainings = std::ssize(models) * (rates * kGateTuningSeeds + kGateSeeds);
  auto text = std::to_string(trainings) + " training runs: " + join(names) + " with " +
              std::to_string(rates) + " learning rates and " + std::to_string(kGateTuningSeeds) +
              " seeds each, more rates where the best is the first or the last; then each at its "
              "best rate with " +
              std::to_string(kGateSeeds) + " other seeds, judged by " +
              to_string(measure_of(experiment.objectives)) + " on the validation split";
  return {
      .overrides = {"mechanisms=" + listed.dump(), "controls=false",
                    "retest.replicates=" + std::to_string(kGateSeeds), "evaluation.keep_models=0"},
      .trainings = trainings,
      .text = std::move(text)};
}

}  // namespace nas
