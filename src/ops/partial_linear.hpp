#pragma once

#include <vector>

#include <torch/types.h>

#include "core/numerical_mode.hpp"
#include "core/visibility.hpp"
#include "ops/parameter.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// A linear map of some models of an array.
struct PartialMap {
  Models models;         ///< M of them
  torch::Tensor weight;  ///< (M, out, in)
  torch::Tensor bias;    ///< (M, out)
};

/// y_m = x_m W_m' + b_m for the models of an array that have a map, in one operation, in the way of
/// a mode; backward likewise. On the CPU, no model's result depends on the others. Not for second
/// derivatives.
///
/// @param x     (R, ..., in).
/// @param maps  at least one, of different models and one size `out`.
/// @return (sum of M, ..., out), one map's models after the other's.
torch::Tensor partial_linear(const torch::Tensor& x, const std::vector<PartialMap>& maps,
                             NumericalMode mode);

}  // namespace nn
}  // namespace nas
