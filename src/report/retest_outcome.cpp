#include "report/retest_outcome.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

#include "indicators/front_probability.hpp"
#include "report/json_number.hpp"
#include "report/summary.hpp"
#include "report/verdict.hpp"
#include "store/replicates.hpp"

namespace nas {

std::string_view to_string(Role role) {
  switch (role) {
    case Role::front:
      return "front";
    case Role::top:
      return "top";
    case Role::listed:
      return "listed";
    case Role::baseline:
      return "baseline";
    case Role::control:
      break;
  }
  return "control";
}

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

bool is_winner(Role role) { return role == Role::front || role == Role::top; }

double value_named(const Evaluation& evaluation, const char* name) {
  return is_usable(evaluation) ? computed_value(evaluation, name).value_or(kNone) : kNone;
}

/// A value of a single training run, NaN where it has none.
using ValueOf = std::function<double(const Evaluation&)>;

/// Finite ones of a value of each evaluation.
std::vector<double> values_of(const std::vector<Evaluation>& evaluations, const ValueOf& value_of) {
  std::vector<double> values;
  for (const auto& evaluation : evaluations) {
    if (const double value = value_of(evaluation); std::isfinite(value)) values.push_back(value);
  }
  return values;
}

/// What the rows of a re-test are judged in.
struct Frame {
  double confidence = 0.95;
  ValueOf compared;  ///< the measure of a run
  Failures failures{};
  const Retested* plateau = nullptr;  ///< the control whose mean it is

  [[nodiscard]] bool fails(const Evaluation& evaluation) const {
    return compared(evaluation) > failures.line;
  }
};

/// The same as a mean. @param quality  whether failures show in it.
std::optional<Estimate> mean_of(const Retested& retested, const Frame& frame, const Limits& limits,
                                const ValueOf& value_of, bool quality) {
  const auto values = values_of(retested.evaluations, value_of);
  if (values.empty()) return std::nullopt;
  if (!quality || !std::isfinite(frame.failures.line)) {
    return within(limits.least, limits.most, estimate(values, frame.confidence));
  }
  std::vector<bool> failed;
  for (const auto& evaluation : retested.evaluations) {
    if (std::isfinite(value_of(evaluation))) failed.push_back(frame.fails(evaluation));
  }
  std::vector<double> plateau;
  if (frame.plateau != nullptr) plateau = values_of(frame.plateau->evaluations, value_of);
  return within(
      limits.least, limits.most,
      estimate_with_failures(values, failed, plateau.empty() ? kNone : estimate(plateau).mean,
                             frame.confidence));
}

/// The value of an objective over all seeds of a candidate, at least one of them usable.
double value_across(const ChosenObjective& objective, const std::vector<Evaluation>& evaluations) {
  return objective.value(Objective::Evaluations(pointers(evaluations)));
}

/// The values that single training runs have of an objective.
ValueOf values_of(const ChosenObjective& objective) {
  return [&objective](const Evaluation& evaluation) {
    return is_usable(evaluation) ? objective.value(evaluation) : kNone;
  };
}

/// Share of right answers on the test split.
double test_accuracy(const Evaluation& evaluation) {
  return is_usable(evaluation) ? test_scores(evaluation).accuracy() : kNone;
}

std::optional<Estimate> retested_value(const ChosenObjective& objective, const Retested& retested,
                                       std::int64_t n, const Frame& frame) {
  if (n == 0) return std::nullopt;
  if (!objective.objective.across) {
    const bool quality = objective.needs_training() && objective.key != "peak_memory" &&
                         objective.key != "train_seconds";
    return mean_of(retested, frame, objective.objective.limits, values_of(objective), quality);
  }
  const double value = value_across(objective, retested.evaluations);
  if (!std::isfinite(value)) return std::nullopt;
  return Estimate{.mean = value, .standard_error = kNone, .n = n, .low = kNone, .high = kNone};
}

/// By seed the objectives in minimisation form, empty where one is not finite.
Points points_of(const Retested& retested, const ObjectiveSet& objectives) {
  Points points;
  for (const auto& evaluation : retested.evaluations) {
    Point point;
    for (const auto& objective : objectives.objectives) {
      if (!is_usable(evaluation)) break;
      const double value = objective.objective.across
                               ? value_across(objective, retested.evaluations)
                               : objective.value(evaluation);
      if (!std::isfinite(value)) break;
      point.push_back(objective.minimised(value));
    }
    if (point.size() != objectives.objectives.size()) point.clear();
    points.push_back(std::move(point));
  }
  return points;
}

/// With fewer seeds a bootstrap says 0 or 1 too often: of two equal candidates in 26 % of cases at 3.
constexpr std::size_t kFewestForProbability = 8;

/// Among the candidates that a search may return: none that tuning made or a constraint rejects,
/// and no control.
void find_probabilities(const std::vector<Retested>& retested, const ObjectiveSet& objectives,
                        RetestOutcome& outcome) {
  std::vector<Points> samples;
  std::vector<RetestedCandidate*> members;
  for (std::size_t i = 0; i < retested.size(); ++i) {
    const auto role = retested[i].role;
    if (role == Role::control) continue;
    if (!outcome.candidates[i].rejected.empty()) continue;
    samples.push_back(points_of(retested[i], objectives));
    members.push_back(&outcome.candidates[i]);
  }
  // By the seeds that all have.
  std::size_t seeds = std::numeric_limits<std::size_t>::max();
  for (const auto& points : samples) seeds = std::min(seeds, points.size());
  if (seeds < kFewestForProbability) return;
  for (auto& points : samples) points.resize(seeds);
  const auto probabilities = front_probability(samples, objectives.judges_failures());
  if (!probabilities) return;
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i]->non_dominated_probability = (*probabilities)[i];
  }
}

bool any_failed(const Retested& retested) {
  return std::any_of(retested.evaluations.begin(), retested.evaluations.end(),
                     [](const Evaluation& evaluation) { return !is_usable(evaluation); });
}

/// Compares two candidates on the seeds that both have.
std::optional<Contrast> contrast(const Retested& candidate, const Retested& reference,
                                 const RetestOutcome& outcome, const ValueOf& value_of) {
  const bool sequence =
      outcome.until && candidate.role != Role::control && reference.role != Role::control;
  std::vector<double> a;
  std::vector<double> b;
  bool same = true;
  const auto seeds = std::min(candidate.evaluations.size(), reference.evaluations.size());
  for (std::size_t i = 0; i < seeds; ++i) {
    same &= candidate.evaluations[i].id == reference.evaluations[i].id;
    const double first = value_of(candidate.evaluations[i]);
    const double second = value_of(reference.evaluations[i]);
    if (!std::isfinite(first) || !std::isfinite(second)) continue;
    a.push_back(first);
    b.push_back(second);
  }
  if (same || a.empty()) return std::nullopt;
  const auto compare = sequence ? compare_anytime : compare_paired;
  Contrast contrast{.paired = compare(a, b, outcome.confidence), .measure = outcome.measure};
  if (sequence) {
    contrast.p_beyond = p_beyond(contrast.paired.difference, outcome.bound(*outcome.until));
  }
  return contrast;
}

/// Comparisons that are corrected together, since a reader makes all of them.
using Family = std::vector<Contrast*>;

/// Where a candidate keeps a comparison.
using Place = std::function<std::optional<Contrast>&(RetestedCandidate&)>;

/// Which candidates are compared.
using Chosen = std::function<bool(const Retested&)>;

bool is_control(const Retested& one) { return one.role == Role::control; }
bool is_no_control(const Retested& one) { return !is_control(one); }

/// Compares with a reference those others that are chosen. A candidate that failed with one of the
/// seeds is not compared by the others, unless failures are judged by themselves.
/// @param family  receives the comparisons.
void find_contrasts(const std::vector<Retested>& retested, std::size_t reference,
                    const Chosen& chosen, bool failures_judged, const ValueOf& value_of,
                    const Place& place, RetestOutcome& outcome, Family& family) {
  const auto may_be_compared = [&](std::size_t i) {
    return failures_judged || !any_failed(retested[i]);
  };
  if (!may_be_compared(reference)) return;
  for (std::size_t i = 0; i < retested.size(); ++i) {
    if (i == reference || !chosen(retested[i]) || !may_be_compared(i)) continue;
    auto& found = place(outcome.candidates[i]);
    found = contrast(retested[i], retested[reference], outcome, value_of);
    if (found) family.push_back(&*found);
  }
}

/// @param p_of, corrected  where a comparison has a p, and where its corrected one goes.
template <class From, class To>
void correct(const Family& family, From p_of, To corrected) {
  std::vector<double> p_values;
  for (const auto* one : family) p_values.push_back(p_of(*one));
  const auto all = holm(p_values);
  for (std::size_t i = 0; i < all.size(); ++i) corrected(*family[i]) = all[i];
}

void correct(const Family& family) {
  correct(
      family, [](const Contrast& one) { return one.paired.p; },
      [](Contrast & one) -> auto& { return one.p_holm; });
  correct(
      family, [](const Contrast& one) { return one.p_beyond; },
      [](Contrast & one) -> auto& { return one.p_beyond; });
  Family failing;
  std::copy_if(family.begin(), family.end(), std::back_inserter(failing),
               [](const Contrast* one) { return one->p_shares.has_value(); });
  correct(
      failing, [](const Contrast& one) { return *one.p_shares; },
      [](Contrast & one) -> auto& { return *one.p_shares; });
}

/// Which constraint a candidate breaks, and how; empty if none, or where that is not known.
std::string rejection(const Retested& retested, std::int64_t usable,
                      const ObjectiveSet& objectives) {
  const auto evaluations = pointers(retested.evaluations);
  const auto& worst = worst_of(evaluations);
  if (worst.status == Status::rejected) return worst.reason;
  const bool known = usable > 0 && (is_usable(worst) || objectives.judges_failures());
  return known ? objectives.violation_by_training(evaluations) : std::string();
}

/// Compares all with the baseline by each objective that single training runs have.
void find_differences(const std::vector<Retested>& retested, std::size_t baseline,
                      const ObjectiveSet& objectives, RetestOutcome& outcome) {
  for (std::size_t i = 0; i < objectives.objectives.size(); ++i) {
    const auto& objective = objectives.objectives[i];
    if (!objective.needs_training() || objective.objective.across) continue;
    for (const auto chosen : {is_no_control, is_control}) {
      Family family;
      find_contrasts(
          retested, baseline, chosen, objectives.judges_failures(), values_of(objective),
          [i](RetestedCandidate & candidate) -> auto& { return candidate.differences[i]; }, outcome,
          family);
      correct(family);
    }
  }
}

/// By how much better the search thought of a candidate, in minimisation form.
std::optional<double> shift_of(const RetestedCandidate& candidate, const ChosenObjective& objective,
                               std::size_t index) {
  const auto& retest = candidate.retest[index];
  if (!retest || index >= candidate.search.size()) return std::nullopt;
  return objective.minimised(retest->mean) - candidate.search[index];
}

void find_optimism(const ChosenObjective& objective, RetestOutcome& outcome) {
  const auto index = outcome.objective_index;
  if (const auto* baseline = outcome.baseline()) {
    outcome.baseline_optimism = shift_of(*baseline, objective, index);
  }
  const double common = outcome.baseline_optimism.value_or(0.0);
  double sum = 0.0;
  double shares = 0.0;
  double n = 0.0;
  for (const auto& candidate : outcome.candidates) {
    if (!is_winner(candidate.role)) continue;
    const auto by = shift_of(candidate, objective, index);
    if (!by) continue;
    sum += *by;
    shares += (*by - common) / std::abs(candidate.retest[index]->mean);
    n += 1.0;
  }
  if (n == 0.0) return;
  outcome.optimism = sum / n;
  outcome.flattery = *outcome.optimism - common;
  if (std::isfinite(shares)) outcome.flattery_share = shares / n;
}

/// The place of the first objective that training determines; 0: none is.
std::size_t first_trained(const ObjectiveSet& objectives) {
  const auto& all = objectives.objectives;
  const auto found =
      std::find_if(all.begin(), all.end(), [](const auto& one) { return one.needs_training(); });
  return found == all.end() ? 0 : static_cast<std::size_t>(found - all.begin());
}

std::optional<std::size_t> index_of(const RetestOutcome& outcome,
                                    const RetestedCandidate* candidate) {
  if (candidate == nullptr) return std::nullopt;
  return static_cast<std::size_t>(candidate - outcome.candidates.data());
}

}  // namespace

std::string to_string(Measure measure) {
  return measure == Measure::accuracy ? "accuracy" : "perplexity";
}

std::string title(Measure measure) { return "test " + to_string(measure); }

Measure measure_of(const nlohmann::json& retest) {
  return retest.value("measure", "") == title(Measure::accuracy) ? Measure::accuracy
                                                                 : Measure::perplexity;
}

Measure measure_of(const ObjectiveSet& objectives) {
  const auto& first = objectives.objectives[first_trained(objectives)];
  return first.needs_training() && first.key == "accuracy" ? Measure::accuracy
                                                           : Measure::perplexity;
}

double shown_difference(Measure measure, double difference) {
  return 100.0 * (measure == Measure::accuracy ? difference : std::expm1(difference));
}

double RetestOutcome::bound(double share) const {
  return measure == Measure::accuracy ? share : std::log1p(share);
}

const RetestedCandidate* RetestOutcome::baseline() const {
  const auto found = std::find_if(candidates.begin(), candidates.end(), [](const auto& candidate) {
    return candidate.role == Role::baseline;
  });
  return found == candidates.end() ? nullptr : &*found;
}

const RetestedCandidate* RetestOutcome::best_control() const {
  const RetestedCandidate* best = nullptr;
  for (const auto& candidate : candidates) {
    if (candidate.role != Role::control || !candidate.test) continue;
    if (candidate.n < std::ssize(candidate.evaluations)) continue;
    const bool better =
        best == nullptr || (measure == Measure::accuracy ? candidate.test->mean > best->test->mean
                                                         : candidate.test->mean < best->test->mean);
    if (better) best = &candidate;
  }
  return best;
}

Decision RetestOutcome::decision(const RetestedCandidate& candidate) const {
  const auto& contrast = candidate.against_baseline;
  if (!until || !contrast) return Decision::open;
  const auto& difference = contrast->paired.difference;
  const auto decision = decide(difference, contrast->p_holm, contrast->p_beyond, 1.0 - confidence);
  if (decision != Decision::within) return decision;
  const auto runs = runs_for_within();
  return runs && difference.n >= *runs ? Decision::within : Decision::open;
}

namespace {

/// The measure of single runs.
ValueOf compared_by(Measure measure) {
  if (measure == Measure::accuracy) {
    return [](const Evaluation& evaluation) { return 1.0 - test_accuracy(evaluation); };
  }
  return [](const Evaluation& evaluation) { return value_named(evaluation, "test_nll"); };
}

/// Where runs fail: by the best control that needs no attention, else by chance.
Frame frame_of(const std::vector<Retested>& retested, Measure measure, double confidence,
               double chance) {
  Frame frame{.confidence = confidence, .compared = compared_by(measure)};
  std::vector<std::vector<double>> rows;
  double best = kNone;
  for (const auto& one : retested) {
    if (!is_control(one)) {
      auto& row = rows.emplace_back();
      for (const auto& run : one.evaluations) row.push_back(frame.compared(run));
      continue;
    }
    const auto values = values_of(one.evaluations, frame.compared);
    const bool bare =
        std::find(std::begin(kPlateaus), std::end(kPlateaus), one.label) != std::end(kPlateaus);
    if (!bare || values.empty()) continue;
    const double mean = estimate(values).mean;
    if (best <= mean) continue;
    best = mean;
    frame.plateau = &one;
  }
  frame.failures = failures_of(rows, std::isnan(best) ? chance : best);
  return frame;
}

/// What single runs of a candidate say of whether it solves the task.
void find_solved(const Retested& one, const Frame& frame, Measure measure,
                 RetestedCandidate& candidate) {
  std::vector<double> solved;
  for (const auto& run : one.evaluations) {
    candidate.runs.push_back(frame.compared(run));
    if (!frame.failures.fails(candidate.runs.back())) solved.push_back(candidate.runs.back());
  }
  if (!std::isfinite(frame.failures.line)) return;
  candidate.solved = share_solved(candidate.runs, frame.failures);
  if (solved.empty()) return;
  const double middle = median(solved);
  candidate.median_solved = measure == Measure::accuracy ? 1.0 - middle : std::exp(middle);
}

/// How shares of failures compare with those of a reference, where any fails at a seed that both have.
void compare_failures(const RetestedCandidate& reference, const Failures& failures,
                      RetestedCandidate& candidate) {
  auto& contrast = candidate.against_baseline;
  if (!contrast || !candidate.solved || !reference.solved) return;
  const auto fail = [](const Share& share) { return share.count < share.of; };
  if (!fail(*candidate.solved) && !fail(*reference.solved)) return;
  contrast->p_shares = compare_shares(candidate.runs, reference.runs, failures);
}

}  // namespace

std::optional<std::int64_t> RetestOutcome::runs_for_within() const {
  if (!until) return std::nullopt;
  const double cost = failures.cost();
  const auto needed = cost > 0.0 ? runs_to_exclude(bound(*until) / cost) : std::optional(1L);
  if (!needed) return std::nullopt;
  std::int64_t runs = 0;
  bool any_fails = false;
  for (const auto& candidate : candidates) {
    if (candidate.role == Role::control) continue;
    runs += std::ssize(candidate.runs);
    any_fails |= std::any_of(candidate.runs.begin(), candidate.runs.end(),
                             [this](double value) { return failures.fails(value); });
  }
  return any_fails || runs < *needed ? needed : std::min(*needed, kFewestWithin);
}

RetestOutcome judge(const std::vector<Retested>& retested, const ObjectiveSet& objectives,
                    double confidence, std::optional<double> until, double chance) {
  const auto& most =
      *std::max_element(retested.begin(), retested.end(), [](const auto& one, const auto& other) {
        return one.evaluations.size() < other.evaluations.size();
      });
  RetestOutcome outcome{.replicates = std::ssize(most.evaluations),
                        .confidence = confidence,
                        .measure = measure_of(objectives),
                        .until = until,
                        .objective = {},
                        .candidates = {}};
  const auto& all = objectives.objectives;
  outcome.objective_index = first_trained(objectives);
  outcome.objective = all[outcome.objective_index].name;
  const bool by_accuracy = outcome.measure == Measure::accuracy;
  const auto frame = frame_of(retested, outcome.measure, confidence, chance);
  outcome.failures = frame.failures;
  for (const auto& one : retested) {
    RetestedCandidate candidate{.role = one.role,
                                .candidate = one.candidate,
                                .label = one.label,
                                .evaluations = {},
                                .search = one.search,
                                .search_n = one.search_n,
                                .retest = {},
                                .rate = one.rate,
                                .differs = one.differs};
    for (const auto& evaluation : one.evaluations) {
      candidate.evaluations.push_back(evaluation.id);
      candidate.n += is_usable(evaluation) ? 1 : 0;
    }
    for (const auto& objective : all) {
      candidate.retest.push_back(retested_value(objective, one, candidate.n, frame));
    }
    candidate.differences.resize(all.size());
    candidate.rejected = rejection(one, candidate.n, objectives);
    find_solved(one, frame, outcome.measure, candidate);
    candidate.test =
        by_accuracy
            ? mean_of(one, frame, {.least = 0.0, .most = 1.0}, test_accuracy, true)
            : mean_of(
                  one, frame, {.least = 1.0},
                  [](const Evaluation& run) { return value_named(run, "test_perplexity"); }, true);
    outcome.candidates.push_back(std::move(candidate));
  }
  find_probabilities(retested, objectives, outcome);
  const auto baseline = index_of(outcome, outcome.baseline());
  Family family;
  const auto compare = [&](std::optional<std::size_t> reference, const Chosen& chosen,
                           std::optional<Contrast> RetestedCandidate::*place, Family& to) {
    if (!reference) return;
    find_contrasts(retested, *reference, chosen, objectives.judges_failures(), frame.compared,
                   std::mem_fn(place), outcome, to);
    for (std::size_t i = 0; i < retested.size(); ++i) {
      if (place != &RetestedCandidate::against_baseline || !chosen(retested[i])) continue;
      compare_failures(outcome.candidates[*baseline], outcome.failures, outcome.candidates[i]);
    }
  };
  compare(baseline, is_no_control, &RetestedCandidate::against_baseline, family);
  correct(family);
  Family of_controls;
  compare(baseline, is_control, &RetestedCandidate::against_baseline, of_controls);
  correct(of_controls);
  Family against_controls;
  compare(index_of(outcome, outcome.best_control()), is_no_control,
          &RetestedCandidate::against_control, against_controls);
  correct(against_controls);
  if (baseline) find_differences(retested, *baseline, objectives, outcome);
  find_optimism(all[outcome.objective_index], outcome);
  return outcome;
}

namespace {

nlohmann::json record_of(const std::optional<Estimate>& estimate) {
  const auto known = estimate.value_or(
      Estimate{.mean = kNone, .standard_error = kNone, .n = 0, .low = kNone, .high = kNone});
  return {{"mean", json_number(known.mean)},
          {"standard_error", json_number(known.standard_error)},
          {"n", known.n},
          {"low", json_number(known.low)},
          {"high", json_number(known.high)}};
}

nlohmann::json record_of(const RetestedCandidate& candidate) {
  if (!candidate.solved) return nullptr;
  const auto& [count, of, low, high] = *candidate.solved;
  return {{"count", count},
          {"of", of},
          {"low", low},
          {"high", high},
          {"median", json_number(candidate.median_solved)}};
}

nlohmann::json record_of(const Failures& failures) {
  return {{"solved", json_number(failures.solved)},
          {"plateau", json_number(failures.plateau)},
          {"line", json_number(failures.line)}};
}

nlohmann::json record_of(const std::optional<Contrast>& contrast) {
  if (!contrast) return nullptr;
  const auto& [difference, p, effect_size] = contrast->paired;
  return {{"difference", difference.mean},
          {"low", json_number(difference.low)},
          {"high", json_number(difference.high)},
          {"p", p},
          {"p_holm", contrast->p_holm},
          {"p_beyond", contrast->p_beyond},
          {"p_shares", json_number(contrast->p_shares)},
          {"effect_size", json_number(effect_size)},
          {"n", difference.n}};
}

}  // namespace

nlohmann::json to_record(const RetestOutcome& outcome) {
  auto candidates = nlohmann::json::array();
  for (const auto& candidate : outcome.candidates) {
    auto retest = nlohmann::json::array();
    for (const auto& estimate : candidate.retest) retest.push_back(record_of(estimate));
    auto differences = nlohmann::json::array();
    for (const auto& one : candidate.differences) differences.push_back(record_of(one));
    candidates.push_back(
        {{"candidate", candidate.candidate},
         {"label", candidate.label},
         {"role", to_string(candidate.role)},
         {"evaluations", candidate.evaluations},
         {"search", candidate.search},
         {"search_n", candidate.search_n},
         {"retest", retest},
         {"test", record_of(candidate.test)},
         {"solved", record_of(candidate)},
         {"differs", candidate.differs},
         {"non_dominated_probability", json_number(candidate.non_dominated_probability)},
         {"against_baseline", record_of(candidate.against_baseline)},
         {"against_control", record_of(candidate.against_control)},
         {"differences", differences},
         {"rejected", candidate.rejected}});
    if (candidate.rate.is_object()) candidates.back().update(candidate.rate);
    if (outcome.until) {
      constexpr const char* kDecisions[] = {"open", "better", "worse", "within"};
      candidates.back()["decision"] =
          kDecisions[static_cast<std::size_t>(outcome.decision(candidate))];
    }
  }
  nlohmann::json record{{"replicates", outcome.replicates},
                        {"confidence", outcome.confidence},
                        {"objective", outcome.objective},
                        {"failures", record_of(outcome.failures)},
                        {"candidates", candidates},
                        {"optimism", json_number(outcome.optimism)},
                        {"baseline_optimism", json_number(outcome.baseline_optimism)},
                        {"best_control", outcome.best_control() == nullptr
                                             ? nlohmann::json()
                                             : nlohmann::json(outcome.best_control()->label)},
                        {"flattery", json_number(outcome.flattery)},
                        {"probability_split", "validation"},
                        {"verdict", verdict(outcome)}};
  if (outcome.measure != Measure::perplexity) record["measure"] = title(outcome.measure);
  if (outcome.until) record["until"] = *outcome.until;
  if (outcome.at_one_rate) record["at_one_rate"] = true;
  if (outcome.voided) record["voided"] = true;
  if (const auto seeds = seeds_needed(outcome)) record["seeds_needed"] = *seeds;
  return record;
}

}  // namespace nas
