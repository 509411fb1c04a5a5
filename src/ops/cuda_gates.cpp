#include <ATen/Dispatch.h>

#include "cuda/gates.hpp"
#include "ops/cuda_operations.hpp"

namespace nas::nn {

namespace {

/// @param like  of the size of a term.
template <class Real>
cuda::GatedSums<Real> sums_of(const GatedSums& sums, const GatedTensors& terms,
                              const torch::Tensor& logits, const torch::Tensor& like) {
  cuda::GatedSums<Real> given{
      .sums = static_cast<const kernels::GatedSum*>(sums.on_device.data_ptr()),
      .models = like.size(0),
      .size = like.numel() / like.size(0),
      .logits = data_or_null<Real>(logits)};
  for (std::size_t t = 0; t < terms.size(); ++t) given.terms[t] = data_or_null<Real>(terms[t]);
  return given;
}

}  // namespace

void CudaOperations::gated_sum(const GatedSums& sums, const GatedTensors& terms,
                               const torch::Tensor& logits, const torch::Tensor& out) const {
  AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "gated_sum", [&] {
    cuda::gated_sum(sums_of<scalar_t>(sums, terms, logits, out), out.data_ptr<scalar_t>(),
                    StreamOf(out));
  });
}

void CudaOperations::gated_sum_backward(const GatedSums& sums, const GatedTensors& terms,
                                        const torch::Tensor& logits, const torch::Tensor& by_sum,
                                        const GatedTensors& by_terms,
                                        const torch::Tensor& by_logits) const {
  AT_DISPATCH_FLOATING_TYPES(by_sum.scalar_type(), "gated_sum_backward", [&] {
    kernels::GatedTerms<scalar_t> gradients{};
    for (std::size_t t = 0; t < by_terms.size(); ++t) {
      gradients[t] = data_or_null<scalar_t>(by_terms[t]);
    }
    cuda::gated_sum_backward(sums_of<scalar_t>(sums, terms, logits, by_sum),
                             by_sum.data_ptr<scalar_t>(), data_or_null<scalar_t>(by_logits),
                             gradients, StreamOf(by_sum));
  });
}

}  // namespace nas::nn
