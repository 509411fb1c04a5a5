#pragma once

#include <string_view>

#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// How the same mathematics is computed. (What is computed: Semantics.) Part of every result's
/// identity, since sums round differently.
enum class NumericalMode {
  reference,  ///< one LibTorch operation after the other
  exact,      ///< fused kernels
  tf32,  ///< float32 products in TensorFloat-32 on CUDA; on the CPU of two bfloat16 parts, if faster
  fast,  ///< the same, with products of bfloat16 numbers (of attention on a CUDA device:
         ///< TensorFloat-32), summed in float32; float32 weights
};

/// @throws InputError unless "reference", "exact", "tf32" or "fast".
NumericalMode parse_numerical_mode(std::string_view text);
std::string_view to_string(NumericalMode mode);

}  // namespace nas
