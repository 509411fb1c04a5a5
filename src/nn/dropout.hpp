#pragma once

#include <cstdint>

#include <torch/types.h>

namespace nas::nn {

/// What one forward pass draws its dropout from. Masks depend on (seed, site), never on a global
/// generator: the trainer gives the seed of the step, and the pass is a pure function of
/// parameters, tokens and seed.
struct Pass {
  bool training = false;  ///< false: no dropout
  std::uint64_t seed = 0;
};

/// Inverted dropout by a counter: y_i = x_i / (1 - p) if kept, else 0.
///
/// On the CPU element i (in row-major order) is kept iff a 32-bit hash of (seed, site, i) is at
/// least p 2^32, so that the result depends on neither threads nor call order. On another device
/// the mask comes from a generator of that device, seeded by (seed, site): as reproducible, but
/// another mask. Nothing is stored for the backward pass, which draws the mask again.
///
/// @param x     any shape, float32 or float64.
/// @param p     share that is dropped, in [0, 1).
/// @param site  which dropout of the model this is; equal sites in a pass have equal masks.
/// @return x itself if p = 0 or pass.training is false.
torch::Tensor dropout(const torch::Tensor& x, double p, const Pass& pass, std::uint64_t site);

}  // namespace nas::nn
