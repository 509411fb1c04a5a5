#include "study/stages/retest.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/format.hpp"
#include "report/retest_outcome.hpp"
#include "report/verdict.hpp"
#include "statistics/sequential.hpp"
#include "store/replicates.hpp"
#include "study/session/session.hpp"
#include "study/session/set_up.hpp"
#include "study/stages/controls.hpp"
#include "study/stages/rates.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

/// A candidate to be trained again, and how.
struct Wanted {
  Retested retested;
  std::shared_ptr<Problem> problem;    ///< what measures it
  std::optional<TunedRate> rate{};     ///< once it is known
  std::shared_ptr<Problem> at_rate{};  ///< the same at that rate
};

/// What a search found: its front; with one objective its best `top`, in their order.
std::vector<const RankedCandidate*> winners_of(const RunSummary& run, std::size_t top,
                                               const std::string& baseline) {
  if (!run.several()) return best_candidates(run, top, baseline);
  std::vector<const RankedCandidate*> winners;
  for (const auto i : run.front) {
    if (run.ranking[i].candidate != baseline) winners.push_back(&run.ranking[i]);
  }
  return winners;
}

void add_winners(const StageWork& work, const RunSummary& run, const std::string& baseline,
                 const std::shared_ptr<Problem>& problem, std::vector<Wanted>& wanted) {
  const auto top = static_cast<std::size_t>(work.experiment.retest.get<Integer>("top"));
  const auto winners = winners_of(run, top, baseline);
  for (const auto* winner : winners) {
    wanted.push_back(
        {.retested = {.role = run.several() ? Role::front : Role::top,
                      .candidate = winner->candidate,
                      .label = work.setup.problem->label_beside(winner->candidate, baseline),
                      .search = winner->fitness,
                      .search_n = winner->n,
                      .differs = work.setup.problem->differences_from_baseline(winner->candidate,
                                                                               baseline),
                      .evaluations = {}},
         .problem = problem});
  }
}

void add_baseline(const StageWork& work, const RunSummary& run, const std::string& baseline,
                  const std::shared_ptr<Problem>& problem, std::vector<Wanted>& wanted) {
  Retested retested{.role = Role::baseline,
                    .candidate = baseline,
                    .label = work.setup.problem->label(baseline),
                    .evaluations = {}};
  if (run.baseline) {
    retested.search = run.baseline->fitness;
    retested.search_n = run.baseline->n;
  }
  wanted.push_back({.retested = std::move(retested), .problem = problem});
}

/// @param problem  how they are trained; it keeps no models.
void add_controls(const StageWork& work, const std::shared_ptr<Problem>& problem,
                  std::vector<Wanted>& wanted) {
  for (auto& control : controls_of(work.experiment, *problem)) {
    wanted.push_back({.retested = {.role = Role::control,
                                   .candidate = control.candidate.name,
                                   .label = std::move(control.name),
                                   .evaluations = {}},
                      .problem = problem});
  }
}

/// While a re-test is made in place of one that is there: how many seeds that had, for a process that
/// continues.
constexpr const char* kSeedsBefore = "retest_seeds";

/// Seeds of a re-test that an earlier process recorded, or was making another in place of; 0: none.
Integer recorded_seeds(const StageWork& work) {
  const auto recorded = work.store.meta("retest").value_or(nullptr);
  if (recorded.is_object()) return recorded.value("replicates", Integer{0});
  const auto before = work.store.meta(kSeedsBefore).value_or(nullptr);
  return before.is_number_integer() ? before.get<Integer>() : 0;
}

/// Whether the recorded seeds were added until something was decided, which is decided again.
bool was_sequence(const StageWork& work) {
  const auto recorded = work.store.meta("retest").value_or(nullptr);
  return recorded.is_object() && recorded.contains("until");
}

/// Fresh seeds: those that are asked for, and where an earlier process recorded more, these: seeds
/// come to a result, none is taken away.
Integer fresh_seeds(const StageWork& work) {
  const auto asked = work.experiment.retest.get<Integer>("replicates");
  const auto before = recorded_seeds(work);
  if (asked > 0 && before > asked) {
    work.observer.warned("of each there are " + std::to_string(before) +
                         " fresh seeds, more than retest.replicates = " + std::to_string(asked) +
                         ": all count");
  }
  return std::max(asked, before);
}

/// Whether a recorded re-test is of what the search finds now: of its front, or of as many best.
bool is_of_winners(const nlohmann::json& retest, const RunSummary& run,
                   const std::string& baseline) {
  std::vector<std::string> recorded;
  for (const auto& one : retest.at("candidates")) {
    const auto role = one.at("role").get<std::string>();
    if (role == to_string(Role::front) || role == to_string(Role::top)) {
      recorded.push_back(one.at("candidate"));
    }
  }
  std::vector<std::string> now;
  for (const auto* winner : winners_of(run, recorded.size(), baseline)) {
    now.push_back(winner->candidate);
  }
  if (run.several()) {
    std::sort(now.begin(), now.end());
    std::sort(recorded.begin(), recorded.end());
  }
  return now == recorded;
}

/// Whether a recorded training of listed mechanisms is of those that are listed now.
bool is_of_listed(const nlohmann::json& retest, const std::vector<Candidate>& listed) {
  std::multiset<std::string> recorded;
  for (const auto& one : retest.at("candidates")) {
    if (one.at("role") != to_string(Role::control)) recorded.insert(one.at("candidate"));
  }
  std::multiset<std::string> now;
  for (const auto& one : listed) now.insert(one.name);
  return recorded == now;
}

/// Takes away what an earlier process found of other mechanisms: it is not shown beside another
/// result. What is made in its place has as many seeds all the same. Of the same mechanisms it
/// stays until there is more of them.
void set_aside(const StageWork& work) {
  if (const auto before = recorded_seeds(work); before > 0 && !was_sequence(work)) {
    work.store.set_meta(kSeedsBefore, before);
  }
  work.store.set_meta("retest", nullptr);
}

bool is_control(const Wanted& one) { return one.retested.role == Role::control; }

/// The name under which a configuration may give a rate.
std::string name_of(const Retested& one) {
  if (one.role == Role::baseline) return "baseline";
  return one.role == Role::control ? one.label : one.candidate;
}

std::string rates_text(Integer trainings) {
  if (trainings == 0) return {};
  return ", " + std::to_string(trainings) +
         " of them to find learning rates, and more where the best is the first or the last";
}

/// Finds the learning rates of those that are chosen and have none yet.
template <class Chosen>
void take_rates(const StageWork& work, std::vector<Wanted>& wanted, Chosen chosen) {
  const auto lacks = [&](const Wanted& one) { return chosen(one) && !one.rate; };
  std::vector<RateRow> rows;
  for (const auto& one : wanted) {
    if (lacks(one))
      rows.push_back({name_of(one.retested), one.problem->parse(one.retested.candidate)});
  }
  Rates rates(work);
  const auto found = rates_of(work, rates, rows);
  for (auto& one : wanted) {
    if (!lacks(one)) continue;
    one.rate = found.at(one.retested.candidate);
    one.at_rate = rates.at(one.rate->rate, /*score_test=*/true);
    one.retested.rate = to_json(measure_of(work.setup.objectives), *one.rate);
  }
}

/// Training runs that find a rate; as long as it is not known, the most.
Integer trainings_of_rate(const StageWork& work, const Wanted& one) {
  if (!one.rate) {
    const auto candidate = one.problem->parse(one.retested.candidate);
    const auto least = rate_trainings(work.experiment, {{name_of(one.retested), candidate}});
    return least == 0 ? 0 : least + kRateGrowths * race_of_rates().seeds;
  }
  Integer sum = 0;
  for (const auto& [rate, values] : one.rate->tried) sum += std::ssize(values);
  return sum;
}

/// Trains those that are chosen, each at its rate, on the same fresh seeds: those that they lack of so many.
template <class Chosen>
void train_some(const StageWork& work, std::vector<Wanted>& wanted, Integer replicates,
                const std::string& stage, Chosen chosen) {
  take_rates(work, wanted, chosen);
  std::vector<FurtherTraining> trainings;
  std::vector<Retested*> trained;
  std::shared_ptr<Problem> by;
  for (auto& one : wanted) {
    if (!chosen(one)) continue;
    by = one.problem;
    const Integer has = std::ssize(one.retested.evaluations);
    const auto first =
        kFirstHeldOutReplicate + work.experiment.retest.get<Integer>("first_seed") + has;
    trainings.push_back({one.at_rate, one.problem->parse(one.retested.candidate),
                         replicates_from(first, replicates - has)});
    trained.push_back(&one.retested);
  }
  train_further(trainings, work, stage, by);
  for (std::size_t i = 0; i < trained.size(); ++i) {
    auto& all = trained[i]->evaluations;
    std::move(trainings[i].evaluations.begin(), trainings[i].evaluations.end(),
              std::back_inserter(all));
  }
}

/// The measure of guessing, as far as a task knows it: NaN.
double guessing(const nlohmann::json& facts, const ObjectiveSet& objectives) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  if (!facts.is_object()) return kUnknown;
  const auto chance = facts.value("chance", nlohmann::json());
  if (measure_of(objectives) == Measure::accuracy) {
    return chance.is_object() ? 1.0 - chance.value("accuracy", kUnknown) : kUnknown;
  }
  if (chance.is_object()) return chance.value("nll", kUnknown);
  const auto unigram = facts.value("unigram_perplexity", 0.0);
  return unigram > 0.0 ? std::log(unigram) : kUnknown;
}

RetestOutcome judged(const StageWork& work, const std::vector<Wanted>& wanted) {
  std::vector<Retested> retested;
  for (const auto& one : wanted) {
    if (!one.retested.evaluations.empty()) retested.push_back(one.retested);
  }
  const auto& settings = work.experiment.retest;
  const auto until = settings.get<double>("until") / 100.0;
  auto outcome = judge(retested, work.setup.objectives, settings.get<double>("confidence"),
                       until > 0.0 ? std::optional(until) : std::nullopt,
                       guessing(work.store.meta("facts").value_or(nullptr), work.setup.objectives));
  const auto seen = work.store.meta("seen_before").value_or(nullptr);
  if (seen.is_string()) outcome.seen_before = seen;
  std::set<double> rates;
  for (const auto& one : wanted) rates.insert(one.rate ? one.rate->rate : 0.0);
  outcome.at_one_rate =
      !settings.get<bool>("tune") && work.setup.problem->expensive() && rates.size() == 1;
  return outcome;
}

void record(const StageWork& work, const RetestOutcome& outcome) {
  work.store.set_meta("retest", to_record(outcome));
  if (work.store.meta(kSeedsBefore)) work.store.set_meta(kSeedsBefore, nullptr);
}

/// Trains baseline and controls on the first seeds, before all else, and records what they say.
/// @return whether a control is better than the baseline: then nothing that is compared says anything of
/// attention, and `retest.anyway` must ask for the rest.
bool controls_win(const StageWork& work, std::vector<Wanted>& wanted, Integer replicates) {
  if (std::none_of(wanted.begin(), wanted.end(), is_control)) return false;
  const auto first = std::min(kFirstSeeds, replicates);
  const auto is_baseline = [](const Wanted& one) { return one.retested.role == Role::baseline; };
  train_some(work, wanted, first, "training", is_baseline);
  train_some(work, wanted, first, "controls", is_control);
  auto outcome = judged(work, wanted);
  const auto* control = outcome.best_control();
  if (control == nullptr || !control->against_baseline) return false;
  const auto& contrast = *control->against_baseline;
  outcome.voided = !work.experiment.retest.get<bool>("anyway") &&
                   contrast.paired.difference.mean < 0.0 &&
                   contrast.p_holm <= 1.0 - outcome.confidence;
  if (outcome.voided) record(work, outcome);
  return outcome.voided;
}

/// Trains all on the same fresh seeds and records what these say. Controls have a stage of their
/// own: what measures them keeps no models, which whatever measures the others may do.
void train_and_judge(const StageWork& work, std::vector<Wanted>& wanted, Integer replicates,
                     const std::string& stage) {
  train_some(work, wanted, replicates, stage, std::not_fn(is_control));
  train_some(work, wanted, replicates, "controls", is_control);
  record(work, judged(work, wanted));
}

/// Adds seeds in groups until all mechanisms are decided, and records what these say. What is decided
/// gets no more; the baseline gets all, controls the first group, before all else. Only the order of the seeds
/// decides, so that an interrupted run comes to the same.
void train_until_decided(const StageWork& work, std::vector<Wanted>& wanted, Integer most) {
  std::set<std::string> decided;
  const auto is_open = [&decided](const Wanted& one) {
    return !is_control(one) && !decided.contains(one.retested.candidate);
  };
  const auto total = [&](bool goes_on) {
    Integer sum = 0;
    for (const auto& one : wanted) {
      sum += trainings_of_rate(work, one);
      sum += is_control(one)           ? std::min(kFirstSeeds, most)
             : goes_on && is_open(one) ? most
                                       : std::ssize(one.retested.evaluations);
    }
    return sum;
  };
  work.observer.sequence_begins({.name = "training",
                                 .total = total(true),
                                 .problem = *wanted.front().problem,
                                 .baseline = work.experiment.baseline});
  const ToldEnd end(work.observer, &Observer::sequence_ended);
  work.store.set_meta("planned_trainings", total(true));
  if (controls_win(work, wanted, most)) return;
  for (auto seeds = std::min(kFirstSeeds, most);; seeds = next_seeds(seeds, most)) {
    train_some(work, wanted, seeds, "training", is_open);
    decided.clear();
    const auto outcome = judged(work, wanted);
    bool any = false;
    Observer::Group group;
    for (const auto& candidate : outcome.candidates) {
      if (candidate.role != Role::listed) continue;
      group.lines.push_back(progress_text(outcome, candidate, seeds < most));
      // What failed is compared with nothing, however many seeds come.
      const bool is_decided =
          !candidate.against_baseline || outcome.decision(candidate) != Decision::open;
      if (is_decided) decided.insert(candidate.candidate);
      any |= !is_decided;
    }
    record(work, outcome);  // a run that is stopped has what it has
    const bool goes_on = any && seeds < most;
    group.total = total(goes_on);
    work.store.set_meta("planned_trainings", group.total);
    work.observer.group_ended(group);
    if (!goes_on) break;
  }
}

}  // namespace

void retest(const StageWork& work) {
  const auto asked = work.experiment.retest.get<Integer>("replicates") > 0;
  const auto recorded = work.store.meta("retest").value_or(nullptr);
  const auto replicates = fresh_seeds(work);
  if (!asked && !recorded.is_object()) {
    if (replicates > 0) {
      work.observer.warned("a re-test was begun and is not whole; retest.replicates=" +
                           std::to_string(replicates) + " completes it");
    }
    return;
  }
  const RunSummary run(work.store);
  const auto baseline = work.experiment.baseline.empty()
                            ? std::string()
                            : work.setup.problem->parse(work.experiment.baseline).name;
  const bool holds = recorded.is_object() && is_of_winners(recorded, run, baseline);
  if (!asked && holds) return;
  if (!asked) {
    work.store.set_meta("retest", nullptr);
    work.observer.warned("the search has found others since its re-test, which is therefore not " +
                         std::string("shown; retest.replicates=") + std::to_string(replicates) +
                         " tests them, and trains what is new");
    return;
  }
  if (!holds) set_aside(work);
  if (run.ranking.empty()) {
    work.observer.warned("there is nothing to re-test. " + nothing_found_text(run));
    return;
  }
  Rates rates(work);
  const auto problem = rates.at(rates.own(), /*score_test=*/true);
  std::vector<Wanted> wanted;
  add_winners(work, run, baseline, problem, wanted);
  if (!baseline.empty()) add_baseline(work, run, baseline, problem, wanted);
  add_controls(work, problem, wanted);
  train_and_judge(work, wanted, replicates, "re-test");
}

std::vector<Evaluation> train_listed(const StageWork& work) {
  const auto& problem = work.setup.problem;
  const auto replicates = fresh_seeds(work);
  const auto listed = listed_candidates(work.experiment, work.setup.objectives, *problem);
  const auto recorded = work.store.meta("retest").value_or(nullptr);
  if (was_sequence(work) && work.experiment.retest.get<double>("until") == 0.0) {
    throw InputError(
        "retest.until = 0, must stay as it was: this run's seeds were added until something was "
        "decided, of which a test for a fixed number errs too often; or give another folder with "
        "--output");
  }
  if (!recorded.is_object() || !is_of_listed(recorded, listed)) set_aside(work);
  // What an earlier process measured of a candidate holds for its other replicates, too.
  const auto earlier = work.store.evaluations();
  problem->begin_batch(pointers(earlier));
  std::vector<Wanted> wanted;
  for (const auto& candidate : listed) {
    wanted.push_back(
        {.retested = {.role = Role::listed,
                      .candidate = candidate.name,
                      .label = problem->label_beside(candidate.name, listed.back().name),
                      .differs =
                          problem->differences_from_baseline(candidate.name, listed.back().name),
                      .evaluations = {}},
         .problem = problem});
  }
  wanted.back().retested.role = Role::baseline;
  const auto baseline = wanted.size() - 1;
  add_controls(work, problem->with_training(work.experiment.training), wanted);
  Integer planned = 0;
  for (const auto& one : wanted) planned += replicates + trainings_of_rate(work, one);
  work.store.set_meta("planned_trainings", planned);
  if (work.experiment.retest.get<double>("until") > 0.0) {
    train_until_decided(work, wanted, replicates);
  } else if (!controls_win(work, wanted, replicates)) {
    train_and_judge(work, wanted, replicates, "training");
  }
  return std::move(wanted[baseline].retested.evaluations);
}

RetestPlan retest_plan(const Experiment& experiment, const Rehearsal& rehearsal) {
  const auto replicates = experiment.retest.get<Integer>("replicates");
  if (replicates == 0) return {};
  if (const auto listed = std::ssize(experiment.mechanisms); listed > 0) {
    std::vector<RateRow> rows;
    for (const auto& candidate : rehearsal.candidates) rows.push_back({candidate.name, candidate});
    if (!rows.empty()) rows.back().name = "baseline";
    const auto of_rates = rate_trainings(experiment, rows);
    const auto trainings = (listed + 1) * replicates + of_rates;
    const auto until = experiment.retest.get<double>("until");
    return {.text = (until > 0.0 ? "at most " : "") + std::to_string(trainings) +
                    " training runs: " + counted(listed, "mechanism") + " and the baseline " +
                    experiment.baseline + ", on the same " + counted(replicates, "seed") +
                    (until > 0.0 ? ", until each is decided to " + shortest(until) + " %" : "") +
                    rates_text(of_rates),
            .trainings = trainings};
  }
  const bool several = experiment.objectives.objectives.size() > 1;
  const auto top = several ? 0 : std::min(rehearsal.found(), experiment.retest.get<Integer>("top"));
  const auto known = top + (experiment.baseline.empty() ? 0 : 1);
  // Those that come to be the best have rates of their own, or not, as the first have.
  std::vector<RateRow> rows(static_cast<std::size_t>(top));
  for (std::size_t i = 0; i < std::min(rows.size(), rehearsal.candidates.size()); ++i)
    rows[i] = {rehearsal.candidates[i].name, rehearsal.candidates[i]};
  if (!experiment.baseline.empty()) rows.push_back({.name = "baseline", .candidate = {}});
  const auto of_rates = rate_trainings(experiment, rows);
  std::vector<std::string> retested;
  retested.push_back(several ? "the front" : "the best " + std::to_string(top));
  if (!experiment.baseline.empty()) retested.emplace_back("the baseline");
  return {
      .text = join(retested) + " on " + std::to_string(replicates) + " fresh seeds each: " +
              std::to_string(known * replicates + of_rates) + " training runs" +
              (several ? ", and " + std::to_string(replicates) + " for each of the front" : "") +
              rates_text(of_rates),
      .trainings = known * replicates + of_rates};
}

}  // namespace nas
