#include "report/verdict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <optional>

#include "core/error.hpp"
#include "core/format.hpp"
#include "report/json_number.hpp"
#include "report/text.hpp"

namespace nas {

namespace {

using Texts = std::vector<std::string>;
using ContrastField = std::optional<Contrast> RetestedCandidate::*;

/// Of each kind so many are named, and the others counted.
constexpr std::size_t kNamed = 3;
/// With fewer pairs of seeds nothing is said: at two a t-test has one degree of freedom.
constexpr std::int64_t kFewestPairs = 3;

/// A member of a group: a candidate, and its comparison with the group's reference.
struct Compared {
  const RetestedCandidate* candidate;
  const Contrast* contrast;

  [[nodiscard]] double difference() const { return contrast->paired.difference.mean; }
  [[nodiscard]] std::int64_t pairs() const { return contrast->paired.difference.n; }
};

std::string percent_text(double percent) {
  if (std::abs(percent) >= 1e6) return number_text(percent);
  return fixed_text(percent, std::abs(percent) < 0.095 ? 2 : 1);
}

std::string p_text(double p) {
  if (p < 0.001) return "p < 0.001";
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "p = %.2g", p);
  return buffer.data();
}

/// Of differences: "%" of a perplexity, points of accuracy.
const char* unit(Measure measure) { return measure == Measure::accuracy ? " points" : " %"; }

/// "3.1 % (1.2 to 5.0) in test perplexity, n = 5, p = 0.01".
std::string amount(const Contrast& contrast) {
  const auto& difference = contrast.paired.difference;
  const double sign = difference.mean < 0.0 ? -1.0 : 1.0;
  const auto percent = [&](double value) {
    return sign * shown_difference(contrast.measure, value);
  };
  const auto [low, high] = std::minmax({percent(difference.low), percent(difference.high)});
  return percent_text(percent(difference.mean)) + unit(contrast.measure) + " (" +
         percent_text(low) + " to " + percent_text(high) + ") in " + title(contrast.measure) +
         ", n = " + std::to_string(difference.n) + ", " + p_text(contrast.p_holm);
}

/// "X is better than the baseline by ...", one per candidate, the others counted.
void add_differing(const std::vector<Compared>& group, const std::string& word,
                   const std::string& reference, Texts& sentences) {
  for (std::size_t i = 0; i < std::min(kNamed, group.size()); ++i) {
    sentences.push_back(group[i].candidate->label + " is " + word + " than " + reference + " by " +
                        amount(*group[i].contrast) + ".");
  }
  if (group.size() > kNamed) {
    sentences.push_back(
        "So " + counted(std::ssize(group) - std::int64_t{kNamed}, "other is", "others are") + ".");
  }
}

/// "Both", "All 3".
std::string all_text(std::size_t count) {
  return count == 2 ? "Both" : "All " + std::to_string(count);
}

/// "Neither of the two", "None of the 3".
std::string none_text(std::size_t count) {
  return count == 2 ? "Neither of the two" : "None of the " + std::to_string(count);
}

/// "X", "All 3" or "2 of the 3", with the verb that follows.
std::string who(const std::vector<Compared>& group, std::size_t compared, const std::string& one,
                const std::string& many) {
  if (group.size() == 1) return group.front().candidate->label + one;
  return (group.size() == compared
              ? all_text(compared)
              : std::to_string(group.size()) + " of the " + std::to_string(compared)) +
         many;
}

/// "3 seeds", "2 to 3 seeds": those that comparisons rest on.
std::string pairs_text(const std::vector<Compared>& group) {
  const auto [least, most] = std::minmax_element(
      group.begin(), group.end(),
      [](const Compared& a, const Compared& b) { return a.pairs() < b.pairs(); });
  auto text = std::to_string(least->pairs());
  if (least->pairs() != most->pairs()) text += " to " + std::to_string(most->pairs());
  return text + (most->pairs() == 1 ? " seed" : " seeds");
}

/// "3.1 % better".
std::string effect_text(Measure measure, double difference) {
  const double percent = shown_difference(measure, difference);
  const bool tiny = percent != 0.0 && std::abs(percent) < 0.005;
  return (tiny ? "less than 0.01" : percent_text(std::abs(percent))) + unit(measure) +
         (percent > 0.0 ? " worse" : " better");
}

/// "between 5.0 % better and 1.2 % worse".
std::string between_text(Measure measure, const Estimate& difference) {
  if (!std::isfinite(difference.low)) return "with so few seeds anything";
  return "between " + effect_text(measure, difference.low) + " and " +
         effect_text(measure, difference.high);
}

/// Whether a mean is near enough to be "within", for which there are too few runs: some may fail.
bool may_fail(const RetestOutcome& outcome, const Contrast& contrast) {
  return outcome.until && contrast.p_beyond <= 1.0 - outcome.confidence;
}

/// Seeds with which a comparison would tell more.
/// @param compared  comparisons that are corrected together.
std::optional<std::int64_t> seeds_of(const RetestOutcome& outcome, const Contrast& contrast,
                                     std::size_t compared) {
  const auto& difference = contrast.paired.difference;
  const double alpha = (1.0 - outcome.confidence) / static_cast<double>(compared);
  if (may_fail(outcome, contrast)) return outcome.runs_for_within();
  return outcome.until ? seeds_to_decide(difference, alpha, outcome.bound(*outcome.until))
                       : seeds_to_show(difference, alpha);
}

/// "no failure in 8 runs: up to 31 % of them may fail, and one costs 98 %; about 60 more seeds would tell".
std::string may_fail_text(const RetestOutcome& outcome, const Compared& one,
                          std::optional<std::int64_t> seeds) {
  const auto& runs = one.candidate->runs;
  const auto failed = std::count_if(runs.begin(), runs.end(),
                                    [&](double value) { return outcome.failures.fails(value); });
  if (failed > 0)
    return counted(failed, "run fails", "runs fail") + " of " + std::to_string(std::ssize(runs));
  const auto text = "no failure in " + counted(std::ssize(runs), "run") + ": up to " +
                    percent_text(100.0 * share_not_excluded(std::ssize(runs))) +
                    " % of them may fail";
  if (!seeds) return text + ", and without controls nothing says what that costs";
  return text + "; about " + counted(std::max<std::int64_t>(1, *seeds - one.pairs()), "more seed") +
         " would tell";
}

std::string seeds_text(const RetestOutcome& outcome, const Compared& one, std::size_t compared) {
  const auto most = "more than " + grouped(kMostSeedsNeeded);
  const auto seeds = seeds_of(outcome, *one.contrast, compared);
  if (may_fail(outcome, *one.contrast)) return may_fail_text(outcome, one, seeds);
  if (outcome.until) {
    return seeds ? "about " + counted(*seeds - one.pairs(), "more seed") + " would decide"
                 : most + " seeds would be needed";
  }
  return (seeds ? "about " + grouped(*seeds) : most) +
         " seeds would show a difference of that size";
}

/// Whether a size can be told: not where all pairs are equal.
bool has_size(const Compared& one) { return one.contrast->paired.difference.standard_error > 0.0; }

std::string size_text(const RetestOutcome& outcome, const Compared& one, std::size_t compared) {
  const auto& difference = one.contrast->paired.difference;
  const auto measure = outcome.measure;
  return effect_text(measure, difference.mean) + ", " + between_text(measure, difference) + "; " +
         seeds_text(outcome, one, compared);
}

/// @param compared  comparisons that are corrected together.
void add_undecided(const RetestOutcome& outcome, const std::vector<Compared>& group,
                   std::size_t compared, const std::string& reference, Texts& sentences) {
  if (group.empty()) return;
  const auto lead = (group.size() == 1          ? group.front().candidate->label + " is not"
                     : group.size() == compared ? none_text(compared) + " is"
                                                : who(group, compared, "", " are not")) +
                    " shown to differ from " + reference + " with " + pairs_text(group);
  if (group.size() == 1) {
    const auto& one = group.front();
    sentences.push_back(lead + (has_size(one) ? ": " + size_text(outcome, one, compared) : "") +
                        ".");
    return;
  }
  sentences.push_back(lead + ".");
  for (const auto& one : group) {
    if (!has_size(one) || one.candidate->role != Role::listed) continue;
    sentences.push_back(one.candidate->label + " is " + size_text(outcome, one, compared) + ".");
  }
}

/// Those that are as good as the reference, to the bound that seeds were added for.
void add_within(const RetestOutcome& outcome, const std::vector<Compared>& group,
                const std::string& reference, Texts& sentences) {
  for (const auto& one : group) {
    const auto& difference = one.contrast->paired.difference;
    sentences.push_back(one.candidate->label + " is within " +
                        percent_text(100.0 * *outcome.until) + unit(outcome.measure) + " of " +
                        reference + ": " + effect_text(outcome.measure, difference.mean) + ", " +
                        between_text(outcome.measure, difference) +
                        ", n = " + std::to_string(difference.n) + ".");
  }
}

/// "16 of 20 (0.56 to 0.94)".
std::string share_text(const Share& share) {
  return std::to_string(share.count) + " of " + std::to_string(share.of) + " (" +
         fixed_text(share.low, 2) + " to " + fixed_text(share.high, 2) + ")";
}

/// How many runs solve the task, where some do not; else how many may fail unseen.
void add_shares(const RetestOutcome& outcome, Texts& sentences) {
  const double line = outcome.failures.line;
  if (!std::isfinite(line)) return;
  std::vector<const RetestedCandidate*> rows;
  bool fails = false;
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (const auto& candidate : outcome.candidates) {
    if (candidate.role == Role::control || !candidate.solved) continue;
    rows.insert(candidate.role == Role::baseline ? rows.begin() : rows.end(), &candidate);
    fails |= candidate.solved->count < candidate.solved->of;
    fewest = std::min(fewest, candidate.solved->of);
  }
  if (rows.empty()) return;
  const bool by_accuracy = outcome.measure == Measure::accuracy;
  const auto where = title(outcome.measure) + (by_accuracy ? " below " : " above ") +
                     number_text(by_accuracy ? 1.0 - line : std::exp(line));
  if (!fails) {
    sentences.push_back("No run fails (" + where + "); of " + counted(fewest, "run") + " up to " +
                        percent_text(100.0 * share_not_excluded(fewest)) + " % may.");
    return;
  }
  std::string text = "Some runs fail (" + where + "). The task is solved in";
  std::string differing;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = *rows[i];
    const auto p =
        row.against_baseline && !outcome.until ? row.against_baseline->p_shares : std::nullopt;
    const bool differs = p && *p <= 1.0 - outcome.confidence;
    if (i > kNamed && !differs) continue;
    text += (i == 0 ? " " : ", ") + share_text(*row.solved) + " runs of " +
            (row.role == Role::baseline ? "the baseline" : row.label) +
            (p ? differs ? ", which differs, " + p_text(*p) : ", " + p_text(*p) : "");
  }
  sentences.push_back(text + ".");
}

void add_too_few(const std::vector<Compared>& group, std::size_t compared,
                 const std::string& reference, Texts& sentences) {
  if (group.empty()) return;
  sentences.push_back(who(group, compared, " has", " have") + " too few seeds in common with " +
                      reference + " for a verdict: " + pairs_text(group) + ".");
}

/// Sorts candidates into better, worse and undecided, and says so.
void add_comparisons(const RetestOutcome& outcome, std::vector<Compared> compared,
                     const std::string& reference, Texts& sentences) {
  std::stable_sort(compared.begin(), compared.end(), [](const Compared& a, const Compared& b) {
    return a.difference() < b.difference();
  });
  std::vector<Compared> better;
  std::vector<Compared> worse;
  std::vector<Compared> undecided;
  std::vector<Compared> within;
  std::vector<Compared> too_few;
  for (const auto& one : compared) {
    if (one.pairs() < kFewestPairs) {
      too_few.push_back(one);
      continue;
    }
    const bool beyond_noise = one.contrast->p_holm <= 1.0 - outcome.confidence;
    const bool as_good = outcome.until && outcome.decision(*one.candidate) == Decision::within;
    auto& group = as_good                  ? within
                  : !beyond_noise          ? undecided
                  : one.difference() < 0.0 ? better
                                           : worse;
    group.push_back(one);
  }
  add_differing(better, "better", reference, sentences);
  add_within(outcome, within, reference, sentences);
  add_undecided(outcome, undecided, compared.size(), reference, sentences);
  add_differing(worse, "worse", reference, sentences);
  add_too_few(too_few, compared.size(), reference, sentences);
}

std::vector<Compared> compared_by(const RetestOutcome& outcome, ContrastField field) {
  std::vector<Compared> compared;
  for (const auto& candidate : outcome.candidates) {
    const auto& contrast = candidate.*field;
    if (contrast && candidate.role != Role::control) compared.push_back({&candidate, &*contrast});
  }
  return compared;
}

/// How candidates compare with the best control, before anything else is said of them.
void add_controls(const RetestOutcome& outcome, Texts& sentences) {
  const auto* control = outcome.best_control();
  if (control == nullptr) return;
  const double level = 1.0 - outcome.confidence;
  const auto compared = compared_by(outcome, &RetestedCandidate::against_control);
  std::vector<Compared> others;
  std::vector<Compared> better;
  for (const auto& one : compared) {
    if (one.pairs() < kFewestPairs) return;
    // Of the baseline the p that the control's own row shows: the same pair, among the controls.
    const bool is_baseline = one.candidate->role == Role::baseline;
    const auto& tested =
        is_baseline && control->against_baseline ? *control->against_baseline : *one.contrast;
    const bool beyond_noise = tested.p_holm <= level;
    if (!is_baseline) {
      others.push_back(one);
      if (beyond_noise && one.difference() < 0.0) better.push_back(one);
    } else if (!beyond_noise) {
      sentences.push_back("The baseline is not shown to be better than a control, " +
                          control->label + ": being better than the baseline says little here.");
    } else if (one.difference() > 0.0) {
      sentences.push_back("A control, " + control->label + ", is better than the baseline by " +
                          amount(control->against_baseline.value_or(*one.contrast)) +
                          ": being better than the baseline says nothing of attention here.");
    } else {
      sentences.push_back("The baseline is better than every control, than " + control->label +
                          " by " + amount(*one.contrast) + ".");
    }
  }
  if (others.empty()) return;
  const bool one = others.size() == 1;
  const auto name = one ? others.front().candidate->label : std::string();
  std::string who;
  if (better.empty()) {
    who = one ? name + " is not" : none_text(others.size()) + " mechanisms is";
  } else if (better.size() == others.size()) {
    who = one ? name + " is" : all_text(others.size()) + " mechanisms are";
  } else {
    who = "Of the " + std::to_string(others.size()) + " mechanisms " +
          counted(std::ssize(better), "is", "are");
  }
  sentences.push_back(who + " shown to be better than that control.");
}

/// What a name does not say of a row: further differences, and that its learning rate may not be the best.
void add_conditions(const RetestOutcome& outcome, Texts& sentences) {
  Texts at_end;
  for (const auto& candidate : outcome.candidates) {
    if (candidate.role == Role::control) continue;
    if (!candidate.differs.empty()) {
      sentences.push_back(candidate.label + " differs from the baseline also in " +
                          candidate.differs + ".");
    }
    if (!candidate.rate.is_object() || !candidate.rate.value("rate_at_end", false)) continue;
    at_end.push_back((candidate.role == Role::baseline ? "the baseline" : candidate.label) + " (" +
                     shortest(candidate.rate.at("learning_rate").get<double>()) + ')');
  }
  if (at_end.empty()) return;
  sentences.push_back("A better learning rate may lie beyond those tried, for " + join(at_end) +
                      ".");
}

void add_failures(const RetestOutcome& outcome, Texts& sentences) {
  for (const auto& candidate : outcome.candidates) {
    if (!candidate.rejected.empty()) {
      sentences.push_back(candidate.label + " is rejected: " + candidate.rejected + ".");
      continue;
    }
    const auto seeds = std::ssize(candidate.evaluations);
    if (candidate.n == seeds) continue;
    sentences.push_back(candidate.label + " failed at " + std::to_string(seeds - candidate.n) +
                        " of " + counted(seeds, "seed") + ".");
  }
}

/// "worse by 4.24": what new seeds do to scores that were better by so much.
std::string shift_text(double optimism) {
  return (optimism > 0.0 ? "worse by " : "better by ") + number_text(std::abs(optimism));
}

void add_optimism(const RetestOutcome& outcome, Texts& sentences) {
  if (!outcome.flattery) return;
  const bool flattered = *outcome.flattery > 0.0;
  std::string text = "The search's scores of what it found were ";
  if (flattered) {
    text += "too optimistic by " + number_text(*outcome.flattery) + " in " + outcome.objective;
    if (outcome.flattery_share && *outcome.flattery_share > 0.0) {
      text += " (" + percent_text(100.0 * *outcome.flattery_share) + " %)";
    }
    text += ", on average";
  } else {
    text += "not too optimistic: with new seeds it is " + shift_text(*outcome.optimism) + " in " +
            outcome.objective + " on average";
  }
  if (outcome.baseline_optimism) {
    text += (flattered ? ", beyond the change of the baseline, which is " : ", the baseline ") +
            shift_text(*outcome.baseline_optimism) + (flattered ? " with new seeds" : "");
  }
  sentences.push_back(text + ".");
}

}  // namespace

std::string verdict(const RetestOutcome& outcome) {
  Texts sentences;
  const auto* baseline = outcome.baseline();
  if (outcome.replicates == 1) {
    sentences.emplace_back("One fresh seed each: nothing can be distinguished from noise.");
    add_failures(outcome, sentences);
    return join(sentences, " ");
  }
  if (baseline != nullptr && baseline->n > 0 && !baseline->test) {
    sentences.emplace_back("Without a test split nothing is compared with the baseline.");
  }
  if (outcome.at_one_rate) sentences.emplace_back("All are trained at one learning rate.");
  add_controls(outcome, sentences);
  if (outcome.voided) {
    sentences.emplace_back(
        "No mechanism was trained, since nothing here could be said of attention: train longer, at "
        "other learning rates, or on a task that asks for attention (nas-data gates tells). "
        "--anyway trains all.");
  }
  add_shares(outcome, sentences);
  add_comparisons(outcome, compared_by(outcome, &RetestedCandidate::against_baseline),
                  "the baseline", sentences);
  add_failures(outcome, sentences);
  add_conditions(outcome, sentences);
  if (!outcome.seen_before.empty()) sentences.push_back(outcome.seen_before);
  add_optimism(outcome, sentences);
  return join(sentences, " ");
}

std::optional<std::int64_t> seeds_needed(const RetestOutcome& outcome) {
  const auto compared = compared_by(outcome, &RetestedCandidate::against_baseline);
  std::optional<std::int64_t> most;
  for (const auto& one : compared) {
    if (one.candidate->role != Role::listed) continue;
    const bool beyond_noise = one.contrast->p_holm <= 1.0 - outcome.confidence;
    if (beyond_noise || outcome.decision(*one.candidate) != Decision::open) continue;
    const auto seeds = seeds_of(outcome, *one.contrast, compared.size());
    if (seeds) most = std::max(most.value_or(0), *seeds);
  }
  return most;
}

namespace {

/// By accuracy.
std::string no_better_than_chance(const RunSummary& run) {
  const auto chance = run.facts.find("chance");
  if (chance == run.facts.end() || !chance->is_object()) return {};
  const auto guessed = number_at(*chance, "accuracy");
  const auto mean = run.baseline->mean(
      [](const Evaluation& evaluation) { return computed_value(evaluation, "accuracy"); });
  if (!guessed || !mean || mean->mean > *guessed) return {};
  return "The baseline has learned nothing: its accuracy is " + number_text(mean->mean) +
         ", that of " + chance->at("by").get<std::string>() + ' ' + number_text(*guessed) +
         ". Train longer, or with another learning rate, before mechanisms are compared.";
}

}  // namespace

std::string unlearned_text(const RunSummary& run) {
  if (run.baseline && measure_of(run) == Measure::accuracy) return no_better_than_chance(run);
  const auto chance = number_at(run.facts, "unigram_perplexity").value_or(0.0);
  if (!run.baseline || chance <= 0.0) return {};
  const auto mean = run.baseline->mean(
      [](const Evaluation& evaluation) { return computed_value(evaluation, "perplexity"); });
  if (!mean) return {};
  const double perplexity = mean->mean;
  if (perplexity < chance) return {};
  return "The baseline has learned nothing: its perplexity is " + number_text(perplexity) +
         ", that of the unigram model, which looks at no context, " + number_text(chance) +
         ". Train longer, or with another learning rate, before mechanisms are compared.";
}

namespace {

/// The first objective that says how well a model does, not what it costs.
std::optional<std::size_t> trained_objective(const RunSummary& run) {
  for (std::size_t i = 0; i < run.objectives.size(); ++i) {
    const auto& one = run.objectives[i];
    if (one.source == "trained" && one.key != "peak_memory" && one.key != "train_seconds") return i;
  }
  return std::nullopt;
}

/// The lowest fitness by an objective among what a search found, trained to the end and not the
/// baseline; how many have it worse than the baseline, and how many there are.
struct Found {
  double best = std::numeric_limits<double>::infinity();
  std::size_t not_better = 0;
  std::size_t number = 0;
};
Found found_by(const RunSummary& run, std::size_t objective) {
  Found found;
  for (const auto& candidate : run.ranking) {
    if (candidate.stopped_at || candidate.candidate == run.baseline->candidate) continue;
    const double fitness = candidate.fitness[objective];
    found.best = std::min(found.best, fitness);
    if (fitness >= run.baseline->fitness[objective]) ++found.not_better;
    ++found.number;
  }
  return found;
}

}  // namespace

Measure measure_of(const RunSummary& run) {
  const auto first = trained_objective(run);
  return first && run.objectives[*first].key == "accuracy" ? Measure::accuracy
                                                           : Measure::perplexity;
}

std::string behind_control_text(const RunSummary& run) {
  const auto objective = trained_objective(run);
  if (!run.baseline || !objective || run.controls.empty()) return {};
  const auto fitness = [&](const ControlSummary& one) { return one.measured.fitness[*objective]; };
  const auto& best =
      *std::min_element(run.controls.begin(), run.controls.end(),
                        [&](const auto& a, const auto& b) { return fitness(a) < fitness(b); });
  const double baseline = run.baseline->fitness[*objective];
  if (fitness(best) >= baseline) return {};
  const auto& of = run.objectives[*objective];
  auto text = "The baseline is behind a control: " + best.name + " has " +
              number_text(of.natural(fitness(best))) + " in " + of.name + ", the baseline " +
              number_text(of.natural(baseline)) + " (n = " + std::to_string(best.measured.n) +
              "). What is better than the baseline here may be so by attending less.";
  const auto found = found_by(run, *objective);
  if (found.number > 0 && found.best >= fitness(best)) {
    text += " Nothing that the search found is better than that control.";
  }
  return text;
}

std::optional<BestCounts> best_counts(const nlohmann::json& counts, Measure measure) {
  const bool by_accuracy = measure == Measure::accuracy;
  std::optional<BestCounts> best;
  if (!counts.is_array()) return best;
  for (const auto& one : counts) {
    const auto score = number_at(one, by_accuracy ? "valid_accuracy" : "valid_nll");
    if (!score) continue;
    const double value = by_accuracy ? *score : std::exp(*score);
    if (best && (by_accuracy ? best->value >= value : best->value <= value)) continue;
    best = {one.at("order").get<std::int64_t>(), one.at("tokens").get<std::int64_t>(), value};
  }
  return best;
}

std::optional<BestCounts> best_counts(const RunSummary& run) {
  return best_counts(run.further.value("count_models", nlohmann::json()), measure_of(run));
}

std::string behind_counts_text(const RunSummary& run) {
  const auto best = best_counts(run);
  if (!best || !run.baseline) return {};
  const auto measure = measure_of(run);
  const bool by_accuracy = measure == Measure::accuracy;
  const auto mean = run.baseline->mean([&](const Evaluation& evaluation) -> std::optional<double> {
    if (evaluation.curve.empty()) return std::nullopt;
    const auto& valid = evaluation.curve.back().valid;
    return by_accuracy ? valid.accuracy() : valid.nll / static_cast<double>(valid.tokens);
  });
  if (!mean) return {};
  const double value = by_accuracy ? mean->mean : std::exp(mean->mean);
  if (by_accuracy ? value > best->value : value < best->value) return {};
  return "The baseline is behind counts of the tokens that it was trained on: its " +
         to_string(measure) + " is " + number_text(value) + ", that of counts of order " +
         std::to_string(best->order) + " " + number_text(best->value) +
         ". It has not learned yet " +
         (best->order == 1
              ? "how often each token comes."
              : "what the last " + counted(best->order - 1, "token says", "tokens say") + ".");
}

std::string untrained_text(const RunSummary& run) {
  constexpr std::size_t kFewest = 10;
  const auto objective = trained_objective(run);
  if (!run.baseline || !objective || run.listed()) return {};
  const auto found = found_by(run, *objective);
  if (found.number < kFewest || found.not_better > 0) return {};
  return "All " + std::to_string(found.number) +
         " mechanisms of the search are better than the baseline in " +
         run.objectives[*objective].name +
         ": it is probably under-trained. Train longer, or with another learning rate.";
}

std::string nothing_found_text(const RunSummary& run) {
  if (run.listed() || run.ended_by.empty() || !run.ranking.empty()) return {};
  const auto failed = std::ssize(run.search.failures);
  const auto counted_of = [](std::int64_t number, const std::string& what) {
    return number > 0 ? ", " + std::to_string(number) + what : std::string();
  };
  return "The search has nothing to return: of " +
         counted(static_cast<std::int64_t>(run.num_asked()), "ask") + " none came to a result" +
         counted_of(std::ssize(run.rejected), " rejected by constraints") +
         counted_of(failed, " failed") + counted_of(std::ssize(run.paused), " paused at a rung") +
         ".";
}

std::vector<std::string> warnings(const RunSummary& run) {
  Texts texts{nothing_found_text(run), unlearned_text(run), behind_control_text(run),
              behind_counts_text(run), untrained_text(run)};
  std::erase_if(texts, [](const std::string& text) { return text.empty(); });
  return texts;
}

std::string progress_text(const RetestOutcome& outcome, const RetestedCandidate& candidate,
                          bool more) {
  const auto& contrast = candidate.against_baseline;
  if (!contrast) {
    Texts why;
    add_failures({.objective = {}, .candidates = {candidate}}, why);
    return why.empty() ? candidate.label + ": nothing to compare" : why.front();
  }
  const auto decision = outcome.decision(candidate);
  const auto& difference = contrast->paired.difference;
  std::string end = more ? "goes on" : "not decided";
  if (decision == Decision::better) end = "decided: better";
  if (decision == Decision::worse) end = "decided: worse";
  if (decision == Decision::within) {
    end = "decided: within " + percent_text(100.0 * *outcome.until) + unit(contrast->measure);
  }
  return candidate.label + ": " + between_text(contrast->measure, difference) + " after " +
         counted(difference.n, "seed") + ", " + end;
}

}  // namespace nas
