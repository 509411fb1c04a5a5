#include "nn/fused_attention.hpp"

#include <algorithm>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>
#include <torch/custom_class.h>

#include "nn/head_layout.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// What does not change between the passes and is no tensor.
struct Call : torch::CustomClassHolder {
  std::vector<ModelAttention> models;

  explicit Call(std::vector<ModelAttention> given) : models(std::move(given)) {}
};
using CallPointer = c10::intrusive_ptr<Call>;

/// Those of one model of (R, B, H, T, d).
template <class Real>
kernels::HeadVectors<Real> vectors(const torch::Tensor& x, std::int64_t model) {
  return {x.data_ptr<std::remove_const_t<Real>>() + model * x.stride(0), x.stride(1), x.stride(2),
          x.stride(3)};
}

/// The tensors of a call, of all models.
struct Inputs {
  torch::Tensor q, k, v, directions, inverse_temperature;
  torch::Tensor weights{}, statistics{};  ///< undefined, or where the backward pass finds them

  [[nodiscard]] std::int64_t num_heads() const { return q.size(1) * q.size(2); }  ///< of a model
};

template <class Real>
kernels::Attention<Real> attention_of(const ModelAttention& model, std::int64_t r,
                                      const Inputs& inputs) {
  kernels::Attention<Real> attention;
  const auto& q = inputs.q;
  attention.sequences = q.size(1);
  attention.heads = q.size(2);
  attention.tokens = q.size(3);
  attention.width = q.size(4);
  attention.score = model.score;
  attention.normalization = model.normalization.kernel<Real>();
  attention.q = vectors<const Real>(q, r);
  attention.k = vectors<const Real>(inputs.k, r);
  attention.v = vectors<const Real>(inputs.v, r);
  if (model.direction >= 0) {
    attention.direction = inputs.directions.data_ptr<Real>() + model.direction * q.size(4);
  }
  attention.inverse_temperature = vectors<const Real>(inputs.inverse_temperature, r);
  attention.dropout = model.dropout;
  if (inputs.weights.defined()) {
    attention.weights = inputs.weights.data_ptr<Real>() + r * inputs.weights.stride(0);
    attention.statistics = inputs.statistics.data_ptr<Real>() + r * inputs.statistics.stride(0);
  }
  return attention;
}

/// Calls run(model, begin, end, workspace) for ranges of each model's heads, on LibTorch's threads.
template <class Real, class Run>
void for_heads(const Inputs& inputs, const Run& run) {
  const std::int64_t heads = inputs.num_heads();
  at::parallel_for(0, inputs.q.size(0) * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    const auto workspace = at::empty(
        {kernels::attention_workspace(inputs.q.size(3), inputs.q.size(4))}, inputs.q.options());
    while (begin < end) {
      const std::int64_t model = begin / heads;
      const std::int64_t last = std::min(end, (model + 1) * heads);
      run(model, begin - model * heads, last - model * heads, workspace.template data_ptr<Real>());
      begin = last;
    }
  });
}

torch::Tensor run_forward(const Call& call, const Inputs& inputs) {
  const auto output = empty_heads(inputs.v);
  AT_DISPATCH_FLOATING_TYPES(inputs.q.scalar_type(), "fused_attention", [&] {
    for_heads<scalar_t>(inputs, [&](auto r, auto begin, auto end, scalar_t* workspace) {
      const auto& model = call.models[static_cast<std::size_t>(r)];
      kernels::attention_forward(attention_of<scalar_t>(model, r, inputs),
                                 vectors<scalar_t>(output, r), begin, end, workspace);
    });
  });
  return output.transpose(2, 3).flatten(3);
}

/// Sums over the heads of each model that has a direction: (R, B H, d) -> (M, d), in order.
torch::Tensor direction_gradient(const torch::Tensor& by_head, const Call& call,
                                 const torch::Tensor& directions) {
  auto sums = at::zeros_like(directions);
  const std::int64_t width = by_head.size(2);
  AT_DISPATCH_FLOATING_TYPES(by_head.scalar_type(), "direction_gradient", [&] {
    for (std::size_t r = 0; r < call.models.size(); ++r) {
      if (call.models[r].direction < 0) continue;
      auto* sum = sums.data_ptr<scalar_t>() + call.models[r].direction * width;
      const auto* heads =
          by_head.data_ptr<scalar_t>() + static_cast<std::int64_t>(r) * by_head.stride(0);
      for (std::int64_t h = 0; h < by_head.size(1); ++h) {
        for (std::int64_t e = 0; e < width; ++e) sum[e] += heads[h * width + e];
      }
    }
  });
  return sums;
}

class FusedAttention : public torch::autograd::Function<FusedAttention> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& q,
                               const torch::Tensor& k, const torch::Tensor& v,
                               const torch::Tensor& directions,
                               const torch::Tensor& inverse_temperature, const CallPointer& call) {
    Inputs inputs{q, k, v, directions, inverse_temperature};
    inputs.weights =
        at::empty({q.size(0), inputs.num_heads(), kernels::weights_size(q.size(3))}, q.options());
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
    const auto output = as_heads(outer[0], q.size(2));
    const auto dq = empty_heads(q);
    const auto dk = empty_heads(q);
    const auto dv = empty_heads(q);
    const auto dtemperature =
        at::empty({q.size(0), q.size(1), q.size(2), q.size(3), 1}, q.options());
    const auto ddirection = inputs.directions.numel() > 0
                                ? at::empty({q.size(0), inputs.num_heads(), q.size(4)}, q.options())
                                : torch::Tensor();
    AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "fused_attention_backward", [&] {
      for_heads<scalar_t>(inputs, [&](auto r, auto begin, auto end, scalar_t* workspace) {
        const auto& model = call.models[static_cast<std::size_t>(r)];
        kernels::AttentionGradients<scalar_t> gradients;
        gradients.output = vectors<const scalar_t>(output, r);
        gradients.q = vectors<scalar_t>(dq, r);
        gradients.k = vectors<scalar_t>(dk, r);
        gradients.v = vectors<scalar_t>(dv, r);
        gradients.inverse_temperature =
            dtemperature.data_ptr<scalar_t>() + r * dtemperature.stride(0);
        if (model.direction >= 0) {
          gradients.direction = ddirection.data_ptr<scalar_t>() + r * ddirection.stride(0);
        }
        kernels::attention_backward(attention_of<scalar_t>(model, r, inputs), gradients, begin, end,
                                    workspace);
      });
    });
    return {dq,
            dk,
            dv,
            ddirection.defined() ? direction_gradient(ddirection, call, inputs.directions)
                                 : torch::Tensor(),
            dtemperature,
            {}};
  }
};

void require_fitting(const std::vector<ModelAttention>& models, const Inputs& inputs) {
  const auto& q = inputs.q;
  TORCH_CHECK(q.dim() == 5 && inputs.k.sizes() == q.sizes() && inputs.v.sizes() == q.sizes() &&
                  q.size(0) == static_cast<std::int64_t>(models.size()),
              "attention of ", models.size(), " models has q ", q.sizes(), ", k ", inputs.k.sizes(),
              ", v ", inputs.v.sizes(), ", must be of one size (R, B, H, T, d)");
  for (const auto& model : models) {
    const bool additive = model.score == kernels::Score::additive;
    TORCH_CHECK(additive == (model.direction >= 0) &&
                    (!additive || (model.direction < inputs.directions.size(0) &&
                                   inputs.directions.size(-1) == q.size(4))),
                "additive scores have a direction of ", q.size(4), " numbers, others none");
  }
}

}  // namespace

torch::Tensor fused_attention(const std::vector<ModelAttention>& models, const torch::Tensor& q,
                              const torch::Tensor& k, const torch::Tensor& v,
                              const torch::Tensor& directions,
                              const torch::Tensor& inverse_temperature) {
  const Inputs inputs{with_contiguous_vectors(q), with_contiguous_vectors(k),
                      with_contiguous_vectors(v),
                      // Functions of autograd take no undefined tensors.
                      directions.defined() ? directions.contiguous() : at::empty({0}, q.options()),
                      inverse_temperature};
  require_fitting(models, inputs);
  const auto call = c10::make_intrusive<Call>(models);
  if (at::GradMode::is_enabled() &&
      (inputs.q.requires_grad() || inputs.k.requires_grad() || inputs.v.requires_grad() ||
       inputs.directions.requires_grad() || inputs.inverse_temperature.requires_grad())) {
    return FusedAttention::apply(inputs.q, inputs.k, inputs.v, inputs.directions,
                                 inputs.inverse_temperature, call);
  }
  return run_forward(*call, inputs);
}

}  // namespace nas::nn
