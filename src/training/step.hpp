#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include <torch/types.h>

#include "nn/transformer.hpp"
#include "training/batches.hpp"
#include "training/optimizer.hpp"
#include "training/task.hpp"

namespace nas {

/// What one step of each model computes.
struct StepPlan {
  std::int64_t batch = 0;  ///< sequences whose mean loss is descended
  /// Sequences of which activations exist at once: gradients of a batch are summed over such parts
  /// of it, the last of which may be smaller. 0, or from `batch` on: the whole batch.
  std::int64_t micro = 0;
  std::shared_ptr<const LearningTask> task = next_token();
};

/// Adds the gradients of a batch to those of the parameters. Those of parts of a batch add up to
/// those of the whole, but for rounding: each part's loss is divided by the number of targets of the
/// batch, and its dropout masks are those of its sequences in the batch.
///
/// @param batch  input and target (R, B, T) int64, where the models are.
/// @param pass   the dropout of this step.
/// @param sums   (R), to which the losses, nats per token, are added.
inline void add_gradients(nn::TransformerArray& models, const StepPlan& plan, Batch batch,
                          nn::Pass pass, torch::Tensor& sums) {
  const auto size = batch.input.size(1);
  const auto micro = plan.micro == 0 ? size : plan.micro;
  if (micro >= size) {
    const auto losses =
        plan.task->loss(models.hidden(batch.input, pass), batch.target, torch::Tensor());
    batch = {};  // what no gradient needs takes no memory meanwhile
    losses.sum().backward();
    sums += losses.detach();
    return;
  }
  for (std::int64_t first = 0; first < size; first += micro) {
    const auto part = [&](const torch::Tensor& x) {
      return x.narrow(1, first, std::min(micro, size - first)).contiguous();
    };
    pass.first_sequence = first;
    const auto losses =
        plan.task->loss(models.hidden(part(batch.input), pass), part(batch.target), batch.target);
    losses.sum().backward();
    sums += losses.detach();
  }
}

/// One step of every model of an array, wherever its numbers come from: losses of the batches,
/// gradients, clipping and AdamW. On a device with kernels of its own it can be captured, if batch,
/// seeds and updates are there. Arguments as of add_gradients().
///
/// @param updates  what Optimizer::step() takes.
template <class Updates>
void take_step(nn::TransformerArray& models, Optimizer& optimizer, const StepPlan& plan,
               Batch batch, const nn::Pass& pass, const Updates& updates, torch::Tensor& sums) {
  add_gradients(models, plan, std::move(batch), pass, sums);
  optimizer.step(updates);
}

}  // namespace nas
