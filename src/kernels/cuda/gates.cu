#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/gates.hpp"
#include "kernels/cuda/math.cuh"

namespace nas::cuda {

namespace {

/// factor(s).
template <class Real>
__device__ Real opened(const kernels::GateFactor& factor, Real s) {
  return static_cast<Real>(factor.gated) * s + static_cast<Real>(factor.constant);
}

/// Calls run(sum, element of the array, s, element of the logits) for the thread's elements; s is 0
/// where it does not occur.
template <class Real, class Run>
__device__ void for_sums(const GatedSums<Real>& sums, const Run& run) {
  const std::int64_t model = blockIdx.y;
  const kernels::GatedSum sum = sums.sums[model];
  const bool gated = sum.is_gated();
  for_elements(sums.size, [&](std::int64_t i) {
    const std::int64_t logit = sum.row * sums.size + i;
    run(sum, model * sums.size + i, gated ? logistic(sums.logits[logit]) : Real{0}, logit);
  });
}

template <class Real>
__global__ void sum_kernel(GatedSums<Real> sums, Real* out) {
  for_sums(sums, [&](const kernels::GatedSum& sum, std::int64_t at, Real s, std::int64_t) {
    Real total = 0;
    for (std::size_t t = 0; t < kernels::kGatedTerms; ++t) {
      if (!sum.factors[t].is_zero()) total += opened(sum.factors[t], s) * sums.terms[t][at];
    }
    out[at] = total;
  });
}

template <class Real>
__global__ void backward_kernel(GatedSums<Real> sums, const Real* gradient, Real* by_logits,
                                kernels::GatedTerms<Real> by_terms) {
  for_sums(sums, [&](const kernels::GatedSum& sum, std::int64_t at, Real s, std::int64_t logit) {
    const Real by_sum = gradient[at];
    Real by_gate = 0;
    for (std::size_t t = 0; t < kernels::kGatedTerms; ++t) {
      const kernels::GateFactor factor = sum.factors[t];
      if (by_terms[t] != nullptr) {
        by_terms[t][at] = factor.is_zero() ? Real{0} : by_sum * opened(factor, s);
      }
      if (factor.gated != 0.0F) by_gate += static_cast<Real>(factor.gated) * sums.terms[t][at];
    }
    if (by_logits == nullptr || sum.row < 0) return;
    by_logits[logit] = sum.is_gated() ? by_sum * by_gate * s * (1 - s) : Real{0};
  });
}

}  // namespace

template <class Real>
void gated_sum(const GatedSums<Real>& sums, Real* out, Stream stream) {
  launch("gated_sum", sum_kernel<Real>, elements_grid(sums.models, sums.size), 0, stream, sums,
         out);
}

template <class Real>
void gated_sum_backward(const GatedSums<Real>& sums, const Real* gradient, Real* by_logits,
                        const kernels::GatedTerms<Real>& by_terms, Stream stream) {
  launch("gated_sum_backward", backward_kernel<Real>, elements_grid(sums.models, sums.size), 0,
         stream, sums, gradient, by_logits, by_terms);
}

#define NAS_GATED_SUMS(Real)                                                   \
  template void gated_sum(const GatedSums<Real>&, Real*, Stream);              \
  template void gated_sum_backward(const GatedSums<Real>&, const Real*, Real*, \
                                   const kernels::GatedTerms<Real>&, Stream);
NAS_GATED_SUMS(float)
NAS_GATED_SUMS(double)
#undef NAS_GATED_SUMS

}  // namespace nas::cuda
