#pragma once

#include <cstdint>
#include <functional>
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
  std::int64_t least = 0;  ///< weights of a map, inputs x outputs; fewer go by float32

  [[nodiscard]] By of(std::int64_t weights) const { return weights < least ? By::float32 : by; }
  bool operator==(const CpuProducts&) const = default;
};

/// "float32", "pairs", "tiles" or "LibTorch", perhaps with " from 16384 weights", as records have it.
std::string to_string(const CpuProducts& products);
/// @return nothing for another text, and for what a mode other than `fast` does not have: pairs and LibTorch.
std::optional<CpuProducts> parse_cpu_products(NumericalMode mode, std::string_view text);

/// The fastest of those that a mode may take and the processor has, where it takes maps of 128 x 128 and 128 x 1,024 weights 0.9 of
/// float32's time or less; maps of fewer than 128 x 128 weights go by float32 where those of 48 x 48 take more.
/// @param seconds  of the wide maps or the narrow one, forward and backward; asked only where there is something but float32.
CpuProducts fastest_products(NumericalMode mode, bool has_pairs, bool has_tiles,
                             const std::function<double(CpuProducts::By, bool wide)>& seconds);

/// What this process multiplies by in a mode: what use_cpu_products() was given; else what the environment's variable
/// says, NAS_EXACT_PRODUCTS, NAS_TF32_PRODUCTS or NAS_FAST_PRODUCTS; else fastest_products(), timed in less than 10 ms when it is first
/// asked for, by a product or by who records it: not in a process that does neither.
/// @throws InputError for another value of the variable.
const CpuProducts& cpu_products(NumericalMode mode);

/// Not while models compute. @return what it was.
CpuProducts use_cpu_products(NumericalMode mode, const CpuProducts& products);

/// Whether the mode's variable says what to multiply by.
bool are_cpu_products_given(NumericalMode mode);

/// @param by  pairs or tiles.
kernels::PairForm pair_form(NumericalMode mode, CpuProducts::By by);

/// The products of a map, forward and backward, by `by`; their results are dropped. For measurements.
/// @param x  (1, rows, in).   @param weight  (1, out, in).   @param by_y  (1, rows, out).
void try_products(NumericalMode mode, CpuProducts::By by, const torch::Tensor& x,
                  const torch::Tensor& weight, const torch::Tensor& by_y);

}  // namespace nas::nn
