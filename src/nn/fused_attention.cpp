#include "nn/fused_attention.hpp"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>
#include <torch/custom_class.h>

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// What does not change between the passes and is no tensor.
struct Call : torch::CustomClassHolder {
  kernels::Score score;
  kernels::RowNormalization normalization;
  kernels::Dropout dropout;

  Call(kernels::Score given_score, const kernels::RowNormalization& given_normalization,
       const kernels::Dropout& given_dropout)
      : score(given_score), normalization(given_normalization), dropout(given_dropout) {}
};
using CallPointer = c10::intrusive_ptr<Call>;

/// Vectors contiguous; a tensor that is not is copied.
torch::Tensor with_contiguous_vectors(const torch::Tensor& x) {
  return x.stride(-1) == 1 || x.size(-1) == 1 ? x : x.contiguous();
}

template <class Real>
kernels::HeadVectors<Real> vectors(const torch::Tensor& x) {
  return {x.data_ptr<std::remove_const_t<Real>>(), x.stride(0), x.stride(1), x.stride(2)};
}

/// (B, H, T, d), laid out as (B, T, H, d), so that heads lie side by side.
torch::Tensor empty_heads(const torch::Tensor& like, std::int64_t width) {
  return at::empty({like.size(0), like.size(2), like.size(1), width}, like.options())
      .transpose(1, 2);
}

template <class Real>
kernels::Attention<Real> attention_of(const Call& call, const torch::Tensor& q,
                                      const torch::Tensor& k, const torch::Tensor& v,
                                      const torch::Tensor& direction,
                                      const torch::Tensor& inverse_temperature) {
  kernels::Attention<Real> attention;
  attention.sequences = q.size(0);
  attention.heads = q.size(1);
  attention.tokens = q.size(2);
  attention.width = q.size(3);
  attention.score = call.score;
  attention.normalization = call.normalization.kernel<Real>();
  attention.q = vectors<const Real>(q);
  attention.k = vectors<const Real>(k);
  attention.v = vectors<const Real>(v);
  if (direction.numel() > 0) attention.direction = direction.data_ptr<Real>();
  attention.inverse_temperature = vectors<const Real>(inverse_temperature);
  attention.dropout = call.dropout;
  return attention;
}

/// Calls run(begin, end, workspace) for ranges of heads, on LibTorch's threads.
template <class Real, class Run>
void for_heads(const kernels::Attention<Real>& attention, const torch::TensorOptions& options,
               const Run& run) {
  at::parallel_for(0, attention.num_heads(), 1, [&](std::int64_t begin, std::int64_t end) {
    const auto workspace =
        at::empty({kernels::attention_workspace(attention.tokens, attention.width)}, options);
    run(begin, end, workspace.template data_ptr<Real>());
  });
}

/// @param weights, statistics  undefined, or where the backward pass finds them.
torch::Tensor run_forward(const Call& call, const torch::Tensor& q, const torch::Tensor& k,
                          const torch::Tensor& v, const torch::Tensor& direction,
                          const torch::Tensor& inverse_temperature, const torch::Tensor& weights,
                          const torch::Tensor& statistics) {
  const auto output = empty_heads(q, v.size(3));
  AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "fused_attention", [&] {
    auto attention = attention_of<scalar_t>(call, q, k, v, direction, inverse_temperature);
    if (weights.defined()) {
      attention.weights = weights.data_ptr<scalar_t>();
      attention.statistics = statistics.data_ptr<scalar_t>();
    }
    for_heads(attention, q.options(), [&](auto begin, auto end, scalar_t* workspace) {
      kernels::attention_forward(attention, vectors<scalar_t>(output), begin, end, workspace);
    });
  });
  return output.transpose(1, 2).flatten(2);
}

class FusedAttention : public torch::autograd::Function<FusedAttention> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& q,
                               const torch::Tensor& k, const torch::Tensor& v,
                               const torch::Tensor& direction,
                               const torch::Tensor& inverse_temperature, const CallPointer& call) {
    const auto weights =
        at::empty({q.size(0) * q.size(1), kernels::weights_size(q.size(2))}, q.options());
    const auto statistics = at::empty({q.size(0), q.size(1), q.size(2)}, q.options());
    context->save_for_backward({q, k, v, direction, inverse_temperature, weights, statistics});
    context->saved_data["call"] = at::IValue::make_capsule(call);
    return run_forward(*call, q, k, v, direction, inverse_temperature, weights, statistics);
  }

  static variable_list backward(AutogradContext* context, const variable_list& outer) {
    const auto saved = context->get_saved_variables();
    const auto& [q, k, v, direction, inverse_temperature] =
        std::tie(saved[0], saved[1], saved[2], saved[3], saved[4]);
    const auto capsule = context->saved_data["call"].toCapsule();
    const auto& call = static_cast<const Call&>(*capsule);
    const auto output = with_contiguous_vectors(
        outer[0].view({q.size(0), q.size(2), q.size(1), v.size(3)}).transpose(1, 2));
    const auto dq = empty_heads(q, q.size(3));
    const auto dk = empty_heads(k, k.size(3));
    const auto dv = empty_heads(v, v.size(3));
    const auto dtemperature = at::empty({q.size(0), q.size(1), q.size(2), 1}, q.options());
    const auto ddirection = direction.numel() > 0
                                ? at::empty({q.size(0) * q.size(1), q.size(3)}, q.options())
                                : torch::Tensor();
    AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "fused_attention_backward", [&] {
      auto attention = attention_of<scalar_t>(call, q, k, v, direction, inverse_temperature);
      attention.weights = saved[5].data_ptr<scalar_t>();
      attention.statistics = saved[6].data_ptr<scalar_t>();
      kernels::AttentionGradients<scalar_t> gradients;
      gradients.output = vectors<const scalar_t>(output);
      gradients.q = vectors<scalar_t>(dq);
      gradients.k = vectors<scalar_t>(dk);
      gradients.v = vectors<scalar_t>(dv);
      gradients.inverse_temperature = dtemperature.data_ptr<scalar_t>();
      if (ddirection.defined()) gradients.direction = ddirection.data_ptr<scalar_t>();
      for_heads(attention, q.options(), [&](auto begin, auto end, scalar_t* workspace) {
        kernels::attention_backward(attention, gradients, begin, end, workspace);
      });
    });
    return {dq,           dk, dv, ddirection.defined() ? ddirection.sum(0) : torch::Tensor(),
            dtemperature, {}};
  }
};

}  // namespace

torch::Tensor fused_attention(const FusedScores& scores,
                              const kernels::RowNormalization& normalization,
                              const torch::Tensor& divisors, const torch::Tensor& v,
                              const kernels::Dropout& dropout) {
  const auto q = with_contiguous_vectors(scores.q);
  const auto k = with_contiguous_vectors(scores.k);
  const auto values = with_contiguous_vectors(v);
  // Functions of autograd take no undefined tensors.
  const auto direction =
      scores.direction.defined() ? scores.direction.contiguous() : at::empty({0}, q.options());
  const auto inverse_temperature =
      divisors.to(q.scalar_type()).reciprocal().expand({q.size(0), q.size(1), q.size(2), 1});
  TORCH_CHECK(q.dim() == 4 && k.sizes() == q.sizes() && values.sizes() == q.sizes(),
              "attention of q ", q.sizes(), ", k ", k.sizes(), ", v ", values.sizes(),
              ", must be of one size (B, H, T, d)");
  TORCH_CHECK((scores.score == kernels::Score::additive) == (direction.numel() > 0) &&
                  (direction.numel() == 0 || direction.numel() == q.size(3)),
              "additive scores have a direction of ", q.size(3), " numbers, others none");
  const auto call = c10::make_intrusive<Call>(scores.score, normalization, dropout);
  if (at::GradMode::is_enabled() &&
      (q.requires_grad() || k.requires_grad() || values.requires_grad() ||
       direction.requires_grad() || inverse_temperature.requires_grad())) {
    return FusedAttention::apply(q, k, values, direction, inverse_temperature, call);
  }
  return run_forward(*call, q, k, values, direction, inverse_temperature, {}, {});
}

}  // namespace nas::nn
