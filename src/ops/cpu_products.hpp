#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <torch/types.h>

#include "core/numerical_mode.hpp"
#include "kernels/pairs.hpp"

namespace nas::nn {

/// What multiplies float32 matrices on the CPU in a numerical mode. Results depend on it.
struct CpuProducts {
  enum class By {
    float32,  ///< kernels::multiply()
    pairs,    ///< kernels::multiply_pairs(): factors rounded to bfloat16, results float32
    tiles,    ///< the same in tiles, of three parts in mode `exact`, two in `tf32`, one in `fast`
    library  ///< LibTorch's bfloat16, of which results are rounded, too: where the processor has tiles (AMX)
  };
  By by = By::float32;
  std::int64_t least =
      0;  ///< weights of a map, inputs x outputs; those that have fewer go by float32

  [[nodiscard]] By of(std::int64_t weights) const { return weights < least ? By::float32 : by; }
  bool operator==(const CpuProducts&) const = default;
};

/// "float32", "pairs", "tiles" or "LibTorch", perhaps with " from 16384 weights", as records have it.
std::string to_string(const CpuProducts& products);
/// @return nothing for another text, and for what a mode other than `fast` does not have: pairs and LibTorch.
std::optional<CpuProducts> parse_cpu_products(NumericalMode mode, std::string_view text);

/// What this process multiplies by in a mode: what use_cpu_products() was given; else what the environment's variable
/// says, NAS_EXACT_PRODUCTS, NAS_TF32_PRODUCTS or NAS_FAST_PRODUCTS; else in mode `exact` float32; in others the fastest of
/// those that the processor has for maps of 128 x 128 and 128 x 1,024 weights, timed once a process in less than 10 ms, if it is faster than float32 by a
/// tenth. Maps of fewer than 128 x 128 weights go by float32 where it is no faster for those of 48 x 48.
/// @throws InputError for another value of the variable.
const CpuProducts& cpu_products(NumericalMode mode);

/// Not while models compute.
void use_cpu_products(NumericalMode mode, const CpuProducts& products);

/// Whether the mode's variable says what to multiply by.
bool are_cpu_products_given(NumericalMode mode);

/// @param by  pairs or tiles.
kernels::PairForm pair_form(NumericalMode mode, CpuProducts::By by);

/// The products of a map, forward and backward, by `by`; their results are dropped. For measurements.
/// @param x  (1, rows, in).   @param weight  (1, out, in).   @param by_y  (1, rows, out).
void try_products(NumericalMode mode, CpuProducts::By by, const torch::Tensor& x,
                  const torch::Tensor& weight, const torch::Tensor& by_y);

}  // namespace nas::nn
