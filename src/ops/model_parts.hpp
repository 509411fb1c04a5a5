#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace nas::nn {

// Models of an array, divided into groups. Each of these is one operation on the CPU for any number
// of groups, forward and backward.

/// @param all     some tensors (R, ...) of one device.
/// @param groups  indices of models; each model is in one group.
/// @return of each tensor, the parts that belong to each group, (M, ...); the tensor itself for one
/// group.
std::vector<std::vector<torch::Tensor>> split_models(
    const std::vector<torch::Tensor>& all, const std::vector<std::vector<std::int64_t>>& groups);

/// The same of one tensor back: (R, ...), models in the order of their indices.
torch::Tensor join_models(const std::vector<torch::Tensor>& parts,
                          const std::vector<std::vector<std::int64_t>>& groups);

/// Indices in a device's memory. They are written there once and kept, since the host would wait
/// for every copy.
torch::Tensor index_on(torch::Device device, const std::vector<std::int64_t>& indices);

}  // namespace nas::nn
