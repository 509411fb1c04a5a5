#pragma once

#include <cstdint>

#include "kernels/cuda/stream.hpp"
#include "kernels/gate.hpp"

namespace nas::cuda {

/// The gated sums of kernels/gate.hpp of an array of models, and what they are computed from. Terms
/// that no sum has, and logits if none is gated, may be null.
template <class Real>
struct GatedSums {
  const kernels::GatedSum* sums = nullptr;  ///< (R)
  std::int64_t models = 0;                  ///< R
  std::int64_t size = 0;                    ///< elements of a model
  const Real* logits = nullptr;             ///< (rows, size)
  kernels::GatedTerms<const Real> terms{};  ///< each (R, size)
};

/// @param out  (R, size).
template <class Real>
void gated_sum(const GatedSums<Real>& sums, Real* out, Stream stream);

/// Gradients w.r.t. logits and terms where not null: they are written, in all rows that a sum has.
///
/// @param gradient  w.r.t. the sums, (R, size).
template <class Real>
void gated_sum_backward(const GatedSums<Real>& sums, const Real* gradient, Real* by_logits,
                        const kernels::GatedTerms<Real>& by_terms, Stream stream);

}  // namespace nas::cuda
