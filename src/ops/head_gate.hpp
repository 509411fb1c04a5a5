#pragma once

#include <torch/types.h>

#include "core/visibility.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

enum class GateForm { sigmoid, silu };

/// x g(logits) factor (kernels/head_gate.hpp), g the sigmoid or SiLU, as one operation on the CPU, on
/// LibTorch's threads. Not for second derivatives.
///
/// @param x       (R, ..., d), float32 or float64.
/// @param logits  of x's sizes, or with 1 in place of d.
torch::Tensor gated_heads(const torch::Tensor& x, const torch::Tensor& logits, GateForm form,
                          double factor = 1.0);

}  // namespace nn
}  // namespace nas
