#pragma once

#include "data/corpus.hpp"
#include "nn/transformer.hpp"
#include "store/evaluation.hpp"

namespace nas {

/// @return `count` windows of a split, evenly spaced; all of them if count is 0 or not smaller than
/// their number.
Windows evenly_spaced(const Windows& windows, std::int64_t count);

/// Scores a model on every window of a split, without dropout. Logits are made for at most 2,048
/// targets at a time, so the memory does not depend on the batch. @throws StopRequested between
/// batches.
Scores validate(nn::Transformer& model, const Windows& windows, const SpecialTokens& special,
                std::int64_t batch_size, const std::string& device);

}  // namespace nas
