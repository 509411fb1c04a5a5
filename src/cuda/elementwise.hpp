#pragma once

#include <cstdint>

#include "cuda/dropout.hpp"
#include "cuda/stream.hpp"

namespace nas::cuda {

// The maps of kernels/elementwise.hpp over tensors of `size` elements per model. `out` may be any
// of the others. The backward pass of drop() and add_dropped() is drop() of the gradient.

/// out = dropout(in).
template <class Real>
void drop(const Real* in, Real* out, std::int64_t models, std::int64_t size, const Dropout& dropout,
          Stream stream);

/// out = residual + dropout(in).
template <class Real>
void add_dropped(const Real* in, const Real* residual, Real* out, std::int64_t models,
                 std::int64_t size, const Dropout& dropout, Stream stream);

/// out = dropout(gelu(in)).
template <class Real>
void gelu(const Real* in, Real* out, std::int64_t models, std::int64_t size, const Dropout& dropout,
          Stream stream);

/// out = dropout(gradient) gelu'(in).
template <class Real>
void gelu_backward(const Real* in, const Real* gradient, Real* out, std::int64_t models,
                   std::int64_t size, const Dropout& dropout, Stream stream);

}  // namespace nas::cuda
