#pragma once

#include <torch/types.h>

#include "nn/transformer.hpp"
#include "training/batches.hpp"
#include "training/optimizer.hpp"

namespace nas {

/// One step of every model of an array, wherever its numbers come from: losses of the batches,
/// gradients, clipping and AdamW. On a device with kernels of its own it can be captured, if batch,
/// seeds and updates are there.
///
/// @param batch    input and target (R, B, T) int64, where the models are.
/// @param pass     the dropout of this step.
/// @param updates  what Optimizer::step() takes.
/// @param sums     (R), to which the losses, nats per token, are added.
template <class Updates>
void take_step(nn::TransformerArray& models, Optimizer& optimizer, Batch batch,
               const nn::Pass& pass, const Updates& updates, torch::Tensor& sums) {
  const auto losses = models.loss(batch.input, batch.target, pass);
  batch = {};  // what no gradient needs takes no memory meanwhile
  losses.sum().backward();
  optimizer.step(updates);
  sums += losses.detach();
}

}  // namespace nas
