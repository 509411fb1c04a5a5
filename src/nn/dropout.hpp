#pragma once

#include <cstdint>

#include <torch/types.h>

#include "kernels/dropout.hpp"

namespace nas::nn {

/// What one forward pass draws its dropout from. Masks depend on (seed, site), never on a global
/// generator: the trainer gives the seed of the step, and the pass is a pure function of
/// parameters, tokens and seed.
struct Pass {
  bool training = false;  ///< false: no dropout
  std::uint64_t seed = 0;
};

/// The mask of one dropout of a pass; it drops nothing if p = 0 or pass.training is false.
///
/// @param p     share that is dropped, in [0, 1).
/// @param site  which dropout of the model this is; equal sites in a pass have equal masks.
kernels::Dropout dropout_mask(double p, const Pass& pass, std::uint64_t site);

/// Inverted dropout by a counter: y_i = x_i / (1 - p) if kept, else 0.
///
/// On the CPU the mask is that of kernels/dropout.hpp, which depends on neither threads nor call
/// order. On another device it comes from a generator of that device, seeded by (seed, site): as
/// reproducible, but another mask. Nothing is stored for the backward pass, which draws it again.
///
/// @param x  any shape, float32 or float64.   @param p, site  as above.
/// @return x itself if nothing is dropped.
torch::Tensor dropout(const torch::Tensor& x, double p, const Pass& pass, std::uint64_t site);

/// residual + dropout(x), both of one size: one pass over memory on the CPU.
torch::Tensor add_dropped(const torch::Tensor& residual, const torch::Tensor& x, double p,
                          const Pass& pass, std::uint64_t site);

/// dropout(gelu(x)), gelu(x) = x Phi(x) (kernels/elementwise.hpp): one pass over memory on the CPU.
torch::Tensor dropped_gelu(const torch::Tensor& x, double p, const Pass& pass, std::uint64_t site);

}  // namespace nas::nn
