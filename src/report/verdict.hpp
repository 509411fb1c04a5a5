#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/retest_outcome.hpp"
#include "report/summary.hpp"

namespace nas {

/// What a re-test says, in sentences: whether the baseline and the mechanisms are better than the
/// best control; which mechanisms are better or worse than the baseline beyond noise, which are not shown to
/// differ, by how much these do and how many seeds would show that, which failed or break a constraint, and by how much the
/// search's scores were too optimistic.
///
/// Beyond noise: Holm's p is at most 1 - confidence. Differences are in test perplexity: a mean
/// difference d of nll (nats) is a ratio exp(d) of perplexities.
std::string verdict(const RetestOutcome& outcome);

/// Seeds that would decide about all listed mechanisms that are undecided, as the verdict says of
/// each. Nothing where none is, and of those that need too many.
std::optional<std::int64_t> seeds_needed(const RetestOutcome& outcome);

/// What a run's mechanisms are compared by: accuracy where that is the first objective that training determines.
Measure measure_of(const RunSummary& run);

/// That the baseline's perplexity is no better than the unigram model's, or its accuracy no better than what the
/// corpus says is chance, in sentences. Empty where it is, or where one of the two is not recorded.
std::string unlearned_text(const RunSummary& run);

/// That a control has a better mean than the baseline, by the first objective that comes from
/// training, and whether the search found anything better than it. Empty where none has; of a
/// re-test its verdict says it, by paired seeds.
std::string behind_control_text(const RunSummary& run);

/// The count model that is best on the validation split, of equal history and the same training
/// tokens: its order, how many tokens it counted, and its perplexity or accuracy there.
struct BestCounts {
  std::int64_t order = 0, tokens = 0;
  double value = 0.0;  ///< of the measure
};
/// @param counts  see Problem::counts. @return nothing where none was scored.
std::optional<BestCounts> best_counts(const nlohmann::json& counts, Measure measure);
/// Those that a run has recorded.
std::optional<BestCounts> best_counts(const RunSummary& run);

/// That the baseline's mean nll or accuracy on the validation split is no better than that of counts. Empty where
/// it is, or where one of the two is not recorded.
std::string behind_counts_text(const RunSummary& run);

/// That every mechanism of a search is better than the baseline, which then is probably
/// under-trained. Empty where it is not so, and of a search that found fewer than 10.
std::string untrained_text(const RunSummary& run);

/// That a search has ended without a candidate whose result counts, and what became of those that
/// it asked for; empty where it has one or goes on.
std::string nothing_found_text(const RunSummary& run);

/// What has to be known before anything is concluded from a run: those of the texts above that
/// are not empty.
std::vector<std::string> warnings(const RunSummary& run);

/// What the seeds so far say of a listed mechanism to which seeds are added until it is decided: "sparsemax:
/// between 1.9 % better and 2.2 % worse after 6 seeds, goes on", or "..., decided: within 3 %".
/// @param more  whether an undecided one gets more seeds.
std::string progress_text(const RetestOutcome& outcome, const RetestedCandidate& candidate,
                          bool more);

}  // namespace nas
