#pragma once

#include <cstdint>
#include <vector>

#include "store/evaluation.hpp"
#include "table/table.hpp"

namespace nas {

/// The cells of a mechanism that are there, in the order of their replicates.
std::vector<Evaluation> recorded_replicates(const Table& table, std::int64_t mechanism);

/// The evaluation that the same training run gives when it ends at an earlier point of its curve:
/// usable if that point is there and finite, whatever came later. Its `cpu_seconds` are the same
/// share of all as its seconds are of `train_seconds`; what the test split said at the end is gone.
/// @param step             one of the table's.
/// @param bytes_per_token  of the validation text, 0: it is no text.
Evaluation ended_at(Evaluation evaluation, std::int64_t step, double bytes_per_token);

/// One evaluation in place of several of one mechanism: numbers in `values` and `measured` are the
/// arithmetic means of theirs, perplexity, accuracy and bits_per_byte like all others, so that an
/// objective's value is the mean of its values over the replicates, as everywhere else. The points
/// of its curve are pooled (sums over all their targets), everything else is the first one's. Where
/// one of them failed, the worst of them, its reason naming how many did; stopped_early where one
/// was.
/// @param evaluations      at least one.
/// @param bytes_per_token  of the validation text, 0: it is no text.
Evaluation mean_evaluation(const std::vector<Evaluation>& evaluations, double bytes_per_token);

/// The same with the test split's scores in place of the validation split's, at the end of the
/// curve and in `values`: for ground truth, which a search must not see. What was not recorded of
/// that split is NaN there (all of it where it was not scored), never the validation split's.
/// @param bytes_per_token  of the test text, 0: it is no text, or not known.
Evaluation scored_on_test(Evaluation evaluation, double bytes_per_token);

}  // namespace nas
