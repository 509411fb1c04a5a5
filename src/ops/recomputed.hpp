#pragma once

#include <functional>
#include <vector>

#include <torch/types.h>

namespace nas::nn {

/// What a part of a model gives of some tensors; any of them may be undefined. Called again it does the same.
using PartOfModel =
    std::function<std::vector<torch::Tensor>(const std::vector<torch::Tensor>& inputs)>;

/// part(inputs), of which the backward pass keeps the inputs alone and computes the rest again
/// (activation checkpointing): results and gradients are bitwise those of part(inputs), since each
/// operation is done again on the same numbers. Costs one more forward pass of the part. Gradients of
/// parameters that the part reads are added to theirs as by Tensor::backward(); there are none for
/// torch::autograd::grad(), nor second derivatives.
///
/// @param inputs  one at least asks for a gradient; else part(inputs) is all that is done.
/// @see Chen et al. (2016), arXiv:1604.06174.
std::vector<torch::Tensor> recomputed(const PartOfModel& part,
                                      const std::vector<torch::Tensor>& inputs);

}  // namespace nas::nn
