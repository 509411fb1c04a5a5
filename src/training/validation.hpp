#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/corpus.hpp"
#include "nn/transformer.hpp"
#include "store/evaluation.hpp"
#include "training/task.hpp"

namespace nas {

/// @return `count` of `size` indices, evenly spaced; all of them if count is 0 or above their number.
std::vector<std::int64_t> evenly_spaced(std::int64_t size, std::int64_t count);

/// Scores each model of an array on windows of a split, without dropout. Logits are made for some
/// targets at a time, so that the memory hardly depends on the batch. The host waits for the device
/// once, at the end.
///
/// @param scored  indices of the windows.   @param task  whose scores they are.   @throws StopRequested between batches.
std::vector<Scores> validate(nn::TransformerArray& models, const Windows& windows,
                             std::span<const std::int64_t> scored, const SpecialTokens& special,
                             std::int64_t batch_size, const std::string& device,
                             const LearningTask& task = *next_token());

}  // namespace nas
