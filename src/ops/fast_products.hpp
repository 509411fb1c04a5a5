#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <torch/types.h>

namespace nas::nn {

/// What multiplies in numerical mode `fast` on the CPU. Results depend on it.
struct FastProducts {
  enum class By {
    float32,  ///< as in mode `exact`: where rounded factors are multiplied no faster
    pairs,    ///< kernels::multiply_pairs(): factors rounded to bfloat16, results float32
    library  ///< LibTorch's bfloat16, of which results are rounded, too: where the processor has tiles (AMX)
  };
  By by = By::float32;
  std::int64_t least =
      0;  ///< weights of a map, inputs x outputs; those that have fewer go by float32

  [[nodiscard]] By of(std::int64_t weights) const { return weights < least ? By::float32 : by; }
  bool operator==(const FastProducts&) const = default;
};

/// "float32", "pairs" or "LibTorch", the latter two perhaps with " from 16384 weights", as records have it.
std::string to_string(const FastProducts& products);
/// @return nothing for another text.
std::optional<FastProducts> parse_fast_products(std::string_view text);

/// What this process multiplies by: what use_fast_products() was given; else what the environment's variable
/// NAS_FAST_PRODUCTS says; else the fastest of those that the processor has for maps of 128 x 128 and 128 x 1,024
/// weights, timed once a process in less than 10 ms, if it is faster than float32 by a tenth. Maps of fewer than 128 x 128
/// weights go by float32 where it is no faster for those of 48 x 48.
/// @throws InputError for another value of the variable.
const FastProducts& fast_products();

/// Not while models compute.
void use_fast_products(const FastProducts& products);

/// The products of a map, forward and backward, by `by`; their results are dropped. For measurements.
/// @param x  (1, rows, in).   @param weight  (1, out, in).   @param by_y  (1, rows, out).
void try_products(FastProducts::By by, const torch::Tensor& x, const torch::Tensor& weight,
                  const torch::Tensor& by_y);

/// Whether the variable NAS_FAST_PRODUCTS says what to multiply by.
bool fast_products_are_given();

}  // namespace nas::nn
