#include <ATen/Dispatch.h>
#include <torch/autograd.h>
#include <torch/custom_class.h>

#include "cuda/attention.hpp"
#include "ops/cuda_operations.hpp"
#include "ops/head_layout.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// What does not change between the passes and is not saved as a tensor.
struct Call : torch::CustomClassHolder {
  torch::Tensor models;  ///< described()
  Masks masks;

  Call(torch::Tensor given, Masks given_masks)
      : models(std::move(given)), masks(std::move(given_masks)) {}
};
using CallPointer = c10::intrusive_ptr<Call>;

/// The tensors of a call.
struct Inputs {
  torch::Tensor q, k, v, directions, inverse_temperature;
  torch::Tensor weights{}, statistics{};  ///< undefined, or where the backward pass finds them
};

template <class Real>
cuda::HeadVectors<Real> vectors(const torch::Tensor& x) {
  return {x.data_ptr<std::remove_const_t<Real>>(), x.stride(0), x.stride(1), x.stride(2),
          x.stride(3)};
}

template <class Real>
cuda::Attention<Real> attention_of(const Call& call, const Inputs& inputs) {
  const auto& q = inputs.q;
  return {.models = q.size(0),
          .sequences = q.size(1),
          .heads = q.size(2),
          .tokens = q.size(3),
          .width = q.size(4),
          .mechanisms = static_cast<const cuda::Mechanism*>(call.models.data_ptr()),
          .seeds = seeds_of(call.masks),
          .site = call.masks.site,
          .q = vectors<const Real>(q),
          .k = vectors<const Real>(inputs.k),
          .v = vectors<const Real>(inputs.v),
          .inverse_temperature = vectors<const Real>(inputs.inverse_temperature),
          .directions = inputs.directions.data_ptr<Real>(),
          .num_directions = inputs.directions.numel() / q.size(4),
          .weights = data_or_null<Real>(inputs.weights),
          .statistics = data_or_null<Real>(inputs.statistics)};
}

torch::Tensor run_forward(const Call& call, const Inputs& inputs) {
  const auto output = empty_heads(inputs.v);
  AT_DISPATCH_FLOATING_TYPES(inputs.q.scalar_type(), "attention", [&] {
    cuda::attention_forward(attention_of<scalar_t>(call, inputs), vectors<scalar_t>(output),
                            StreamOf(inputs.q));
  });
  return output.transpose(2, 3).flatten(3);
}

class Attention : public torch::autograd::Function<Attention> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& q,
                               const torch::Tensor& k, const torch::Tensor& v,
                               const torch::Tensor& directions,
                               const torch::Tensor& inverse_temperature, const CallPointer& call) {
    Inputs inputs{q, k, v, directions, inverse_temperature};
    AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "attention", [&] {
      inputs.weights = at::empty(
          {cuda::attention_weights_size(attention_of<scalar_t>(*call, inputs))}, q.options());
    });
    inputs.statistics = at::empty({q.size(0), q.size(1), q.size(2), q.size(3)}, q.options());
    context->save_for_backward(
        {q, k, v, directions, inverse_temperature, inputs.weights, inputs.statistics});
    context->saved_data["call"] = at::IValue::make_capsule(call);
    return run_forward(*call, inputs);
  }

  static variable_list backward(AutogradContext* context, const variable_list& outer) {
    const auto saved = context->get_saved_variables();
    const Inputs inputs{saved[0], saved[1], saved[2], saved[3], saved[4], saved[5], saved[6]};
    const auto capsule = context->saved_data["call"].toCapsule();
    const auto& call = static_cast<const Call&>(*capsule);
    const auto& q = inputs.q;
    const auto by_output = as_heads(outer[0], q.size(2));
    const auto dq = empty_heads(q);
    const auto dk = empty_heads(q);
    const auto dv = empty_heads(q);
    const auto dtemperature =
        at::empty({q.size(0), q.size(1), q.size(2), q.size(3), 1}, q.options());
    const auto ddirections = at::empty_like(inputs.directions);
    AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "attention_backward", [&] {
      const auto attention = attention_of<scalar_t>(call, inputs);
      const auto scratch = at::empty({cuda::attention_scratch_size(attention)}, q.options());
      cuda::attention_backward<scalar_t>(attention,
                                         {.output = vectors<const scalar_t>(by_output),
                                          .q = vectors<scalar_t>(dq),
                                          .k = vectors<scalar_t>(dk),
                                          .v = vectors<scalar_t>(dv),
                                          .inverse_temperature = dtemperature.data_ptr<scalar_t>(),
                                          .directions = ddirections.data_ptr<scalar_t>(),
                                          .scratch = scratch.data_ptr<scalar_t>()},
                                         StreamOf(q));
    });
    return {dq, dk, dv, ddirections, dtemperature, {}};
  }
};

}  // namespace

bool CudaOperations::attention_fits(const torch::Tensor& q, std::int64_t heads) const {
  const StreamOf stream(q);
  const auto width = q.size(3) / heads;
  return q.scalar_type() == at::kDouble ? cuda::attention_fits<double>(q.size(2), width)
                                        : cuda::attention_fits<float>(q.size(2), width);
}

bool CudaOperations::has_form_of(const kernels::RowNormalization& normalization) const {
  return normalization.kind() != kernels::RowNormalization::Kind::own;
}

torch::Tensor CudaOperations::described(const std::vector<ModelAttention>& models,
                                        torch::Device device) const {
  std::vector<cuda::Mechanism> mechanisms;
  for (const auto& model : models) {
    mechanisms.push_back({.score = model.score,
                          .normalization = model.normalization.kind(),
                          .direction = static_cast<std::int32_t>(model.direction),
                          .dropout_threshold = model.dropout.threshold,
                          .dropout_scale = model.dropout.scale});
  }
  return on_device(mechanisms, device);
}

torch::Tensor CudaOperations::attention(const torch::Tensor& models, const Masks& masks,
                                        const torch::Tensor& q, const torch::Tensor& k,
                                        const torch::Tensor& v, const torch::Tensor& directions,
                                        const torch::Tensor& inverse_temperature) const {
  const auto heads = inverse_temperature.size(2);
  const Inputs inputs{as_heads(q, heads), as_heads(k, heads), as_heads(v, heads),
                      // Functions of autograd take no undefined tensors.
                      directions.defined() ? directions.contiguous() : at::empty({0}, q.options()),
                      inverse_temperature};
  const auto call = c10::make_intrusive<Call>(models, masks);
  if (at::GradMode::is_enabled() &&
      (inputs.q.requires_grad() || inputs.k.requires_grad() || inputs.v.requires_grad() ||
       inputs.directions.requires_grad() || inputs.inverse_temperature.requires_grad())) {
    return Attention::apply(inputs.q, inputs.k, inputs.v, inputs.directions,
                            inputs.inverse_temperature, call);
  }
  return run_forward(*call, inputs);
}

}  // namespace nas::nn
