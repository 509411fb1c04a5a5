#pragma once

#include <vector>

#include "data/corpus.hpp"
#include "nn/transformer.hpp"
#include "store/evaluation.hpp"

namespace nas {

/// @return `count` windows of a split, evenly spaced; all of them if count is 0 or not smaller than
/// their number.
Windows evenly_spaced(const Windows& windows, std::int64_t count);

/// Scores each model of an array on every window of a split, without dropout. Logits are made for
/// some targets at a time, so that the memory hardly depends on the batch. @throws StopRequested
/// between batches.
std::vector<Scores> validate(nn::TransformerArray& models, const Windows& windows,
                             const SpecialTokens& special, std::int64_t batch_size,
                             const std::string& device);

}  // namespace nas
