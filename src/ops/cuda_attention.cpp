#include <ATen/Dispatch.h>

#include "cuda/attention.hpp"
#include "ops/cuda_operations.hpp"

namespace nas::nn {

namespace {

/// Those of (R, B, T, H d), contiguous: heads lie side by side.
template <class Real>
cuda::HeadVectors<Real> vectors(const torch::Tensor& x, std::int64_t heads) {
  return {x.data_ptr<std::remove_const_t<Real>>(), x.stride(0), x.stride(1), x.size(3) / heads,
          x.stride(2)};
}

/// @param kept  weights, then statistics; undefined: nothing is kept.
template <class Real>
cuda::Attention<Real> attention_of(const ArrayAttention& models, const AttentionTensors& tensors,
                                   const torch::Tensor& kept) {
  const auto& q = tensors.q;
  const auto& u = tensors.inverse_temperature;
  const auto heads = u.size(2);
  cuda::Attention<Real> attention{
      .models = q.size(0),
      .sequences = q.size(1),
      .heads = heads,
      .tokens = q.size(2),
      .width = q.size(3) / heads,
      .mechanisms = static_cast<const cuda::Mechanism*>(models.on_device.data_ptr()),
      .seeds = seeds_of(models.masks),
      .site = models.masks.site,
      .q = vectors<const Real>(q, heads),
      .k = vectors<const Real>(tensors.k, heads),
      .v = vectors<const Real>(tensors.v, heads),
      .inverse_temperature = {u.data_ptr<Real>(), u.stride(0), u.stride(1), u.stride(2),
                              u.stride(3)},
      .directions = data_or_null<Real>(tensors.directions)};
  if (tensors.directions.defined()) {
    attention.num_directions = tensors.directions.numel() / attention.width;
  }
  if (kept.defined()) {
    attention.weights = kept.data_ptr<Real>();
    attention.statistics = attention.weights + cuda::attention_weights_size(attention);
  }
  return attention;
}

}  // namespace

bool CudaOperations::attention_fits(const torch::Tensor& q, std::int64_t heads) const {
  const StreamOf stream(q);
  const auto width = q.size(3) / heads;
  return q.scalar_type() == at::kDouble ? cuda::attention_fits<double>(q.size(2), width)
                                        : cuda::attention_fits<float>(q.size(2), width);
}

bool CudaOperations::has_form_of(const kernels::RowNormalization& normalization) const {
  // Those that come behind it are the CPU's only.
  return normalization.kind() < kernels::RowNormalization::Kind::own;
}

torch::Tensor CudaOperations::described(const std::vector<ModelAttention>& models,
                                        const Masks& masks, torch::Device device) const {
  std::vector<cuda::Mechanism> mechanisms;
  for (std::size_t r = 0; r < models.size(); ++r) {
    mechanisms.push_back({.score = models[r].score,
                          .normalization = models[r].normalization.kind(),
                          .direction = static_cast<std::int32_t>(models[r].direction),
                          .dropout_threshold = masks.of_models[r].threshold,
                          .dropout_scale = masks.of_models[r].scale});
  }
  return on_device(mechanisms, device);
}

torch::Tensor CudaOperations::attention(const ArrayAttention& models,
                                        const AttentionTensors& tensors,
                                        torch::Tensor* kept) const {
  auto output = at::empty(tensors.v.sizes(), tensors.v.options());
  AT_DISPATCH_FLOATING_TYPES(output.scalar_type(), "attention", [&] {
    auto attention = attention_of<scalar_t>(models, tensors, {});
    if (kept != nullptr) {
      const auto statistics = attention.num_heads() * attention.tokens;
      *kept =
          at::empty({cuda::attention_weights_size(attention) + statistics}, tensors.v.options());
      attention = attention_of<scalar_t>(models, tensors, *kept);
    }
    cuda::attention_forward(attention, vectors<scalar_t>(output, attention.heads),
                            StreamOf(output));
  });
  return output;
}

void CudaOperations::attention_backward(const ArrayAttention& models,
                                        const AttentionTensors& tensors, const torch::Tensor& kept,
                                        const torch::Tensor& by_output,
                                        const AttentionTensors& by) const {
  AT_DISPATCH_FLOATING_TYPES(by_output.scalar_type(), "attention_backward", [&] {
    const auto attention = attention_of<scalar_t>(models, tensors, kept);
    const auto heads = attention.heads;
    const auto scratch = at::empty({cuda::attention_scratch_size(attention)}, by_output.options());
    cuda::attention_backward<scalar_t>(
        attention,
        {.output = vectors<const scalar_t>(by_output, heads),
         .q = vectors<scalar_t>(by.q, heads),
         .k = vectors<scalar_t>(by.k, heads),
         .v = vectors<scalar_t>(by.v, heads),
         .inverse_temperature = by.inverse_temperature.data_ptr<scalar_t>(),
         .directions = data_or_null<scalar_t>(by.directions),
         .scratch = scratch.data_ptr<scalar_t>()},
        StreamOf(by_output));
  });
}

}  // namespace nas::nn
