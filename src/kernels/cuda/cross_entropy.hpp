#pragma once

#include <cstdint>

#include "kernels/cuda/stream.hpp"

namespace nas::cuda {

/// Logits (R, rows, V) and what they are to say: targets (R, rows) below V, or below 0 where
/// nothing is asked.
template <class Logits>
struct CrossEntropy {
  Logits* logits = nullptr;
  const std::int64_t* targets = nullptr;
  std::int64_t models = 0;
  std::int64_t rows = 0;
  std::int64_t vocabulary = 0;
};

/// weights[r] = 1 / the number of targets of model r that are asked for: infinite if there are
/// none.
template <class Real>
void mean_weights(const std::int64_t* targets, std::int64_t models, std::int64_t rows,
                  Real* weights, Stream stream);

/// The gradient of weights[r] sum_rows nll in place of the logits, as
/// kernels::cross_entropy_gradient: weights[r] (softmax(logits) - one_hot(target)), 0 in rows where
/// nothing is asked.
///
/// @param weights  (R).   @param nll  (R, rows), nats; 0 where nothing is asked.
template <class Real>
void cross_entropy_gradient(const CrossEntropy<Real>& task, const Real* weights, double* nll,
                            Stream stream);

/// The same nll without the gradient, and whether the target is the first of the largest logits.
///
/// @param correct  (R, rows).
template <class Real>
void cross_entropy(const CrossEntropy<const Real>& task, double* nll, bool* correct, Stream stream);

/// sums[r] = weights[r] sum_rows nll: the loss.
template <class Real>
void weighted_sums(const double* nll, std::int64_t models, std::int64_t rows, const Real* weights,
                   Real* sums, Stream stream);

/// x[r] *= factors[r], in place; a model whose factor is 1 costs no more than to see that.
///
/// @param x  (R, size).   @param factors  (R).
template <class Real>
void scale_models(Real* x, std::int64_t models, std::int64_t size, const Real* factors,
                  Stream stream);

}  // namespace nas::cuda
