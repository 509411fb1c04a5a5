#pragma once

#include <cstdint>

#include "kernels/dropout.hpp"

namespace nas::kernels {

// Maps over elements [first, first + size) of tensors in row-major order, given by pointers to
// element `first`. `out` may be `in`.

/// out = dropout(in).
void drop(const float* in, float* out, std::int64_t first, std::int64_t size,
          const Dropout& dropout);
void drop(const double* in, double* out, std::int64_t first, std::int64_t size,
          const Dropout& dropout);

/// out = residual + dropout(in).
void add_dropped(const float* in, const float* residual, float* out, std::int64_t first,
                 std::int64_t size, const Dropout& dropout);
void add_dropped(const double* in, const double* residual, double* out, std::int64_t first,
                 std::int64_t size, const Dropout& dropout);

/// out = dropout(gelu(in)), gelu(x) = x Phi(x) with the exact normal distribution function
/// (Hendrycks & Gimpel 2016, arXiv:1606.08415); in float within 1e-6 of the result for in > -5, and
/// 0 below -13.
void gelu(const float* in, float* out, std::int64_t first, std::int64_t size,
          const Dropout& dropout);
void gelu(const double* in, double* out, std::int64_t first, std::int64_t size,
          const Dropout& dropout);

/// out = dropout(gradient) (Phi(in) + in phi(in)).
void gelu_backward(const float* in, const float* gradient, float* out, std::int64_t first,
                   std::int64_t size, const Dropout& dropout);
void gelu_backward(const double* in, const double* gradient, double* out, std::int64_t first,
                   std::int64_t size, const Dropout& dropout);

/// out = dropout(silu(gate) in), silu(x) = x / (1 + e^-x): a gated linear unit's hidden layer
/// (Shazeer 2020, arXiv:2002.05202). Its gradient w.r.t. `in` is the same map of that of the output.
void swiglu(const float* gate, const float* in, float* out, std::int64_t first, std::int64_t size,
            const Dropout& dropout);
void swiglu(const double* gate, const double* in, double* out, std::int64_t first,
            std::int64_t size, const Dropout& dropout);

/// out = dropout(gradient) in silu'(gate): the gradient w.r.t. `gate`.
void swiglu_backward(const float* gate, const float* in, const float* gradient, float* out,
                     std::int64_t first, std::int64_t size, const Dropout& dropout);
void swiglu_backward(const double* gate, const double* in, const double* gradient, double* out,
                     std::int64_t first, std::int64_t size, const Dropout& dropout);

}  // namespace nas::kernels
