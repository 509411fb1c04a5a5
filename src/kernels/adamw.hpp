#pragma once

#include <cstdint>

namespace nas::kernels {

/// The numbers of one step of AdamW.
struct AdamWStep {
  double learning_rate = 0.0;
  double weight_decay = 0.0;
  double gradient_factor = 1.0;    ///< gradients are multiplied by it first: clipping
  double first_correction = 1.0;   ///< 1 - beta1^t in step t = 1, 2, ...
  double second_correction = 1.0;  ///< 1 - beta2^t
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

/// @return the sum of x_i^2, added in double, in an order that depends on `size` only.
template <class Real>
double sum_of_squares(const Real* x, std::int64_t size);

/// One step of AdamW (Loshchilov & Hutter 2017, arXiv:1711.05101), element by element. With the
/// gradient g, moments m and v, learning rate lr, weight decay wd and corrections c:
///
///   p <- p - lr wd p,   m <- beta1 m + (1 - beta1) g,   v <- beta2 v + (1 - beta2) g^2,
///   p <- p - lr (m / c1) / (sqrt(v / c2) + epsilon)
template <class Real>
void adamw(Real* parameter, const Real* gradient, Real* first_moment, Real* second_moment,
           std::int64_t size, const AdamWStep& step);

}  // namespace nas::kernels
