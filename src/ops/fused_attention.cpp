#include "ops/fused_attention.hpp"

#include <algorithm>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>
#include <torch/custom_class.h>

#include "ops/scratch.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// What does not change between the passes and is no tensor.
struct Call : torch::CustomClassHolder {
  std::vector<ModelAttention> models;
  std::int64_t sequences, heads, tokens, width;

  Call(std::vector<ModelAttention> given, const torch::Tensor& inverse_temperature,
       const torch::Tensor& v)
      : models(std::move(given)),
        sequences(v.size(1)),
        heads(inverse_temperature.size(2)),
        tokens(v.size(2)),
        width(v.size(3) / heads) {}

  [[nodiscard]] std::int64_t num_models() const { return static_cast<std::int64_t>(models.size()); }
  [[nodiscard]] std::int64_t num_heads() const { return sequences * heads; }  ///< of a model
  [[nodiscard]] std::int64_t model_size() const { return num_heads() * tokens * width; }
  /// What a model keeps for the backward pass: all heads' weights, then all their statistics.
  [[nodiscard]] std::int64_t weights_size() const {
    return num_heads() * kernels::weights_size(tokens);
  }
  [[nodiscard]] std::int64_t kept_size() const { return weights_size() + num_heads() * tokens; }

  /// Those of model r in (R, B, T, H d), heads side by side.
  template <class Real>
  [[nodiscard]] kernels::HeadVectors<Real> vectors(const torch::Tensor& x, std::int64_t r) const {
    return {x.data_ptr<std::remove_const_t<Real>>() + r * model_size(), tokens * heads * width,
            width, heads * width};
  }
};
using CallPointer = c10::intrusive_ptr<Call>;

/// The tensors of a call in one list.
class Inputs {
 public:
  explicit Inputs(at::TensorList list) : list_(list) {}

  static variable_list list(const AttentionVectors& vectors, const torch::Tensor& temperature) {
    variable_list list{vectors.q.contiguous(), vectors.k.contiguous(), vectors.v.contiguous(),
                       temperature};
    if (vectors.directions.defined()) list.push_back(vectors.directions.contiguous());
    return list;
  }

  [[nodiscard]] const torch::Tensor& q() const { return list_[0]; }
  [[nodiscard]] const torch::Tensor& k() const { return list_[1]; }
  [[nodiscard]] const torch::Tensor& v() const { return list_[2]; }
  [[nodiscard]] const torch::Tensor& inverse_temperature() const { return list_[3]; }
  [[nodiscard]] bool have_directions() const { return list_.size() == 5; }
  [[nodiscard]] const torch::Tensor& directions() const { return list_[4]; }

 private:
  at::TensorList list_;
};

/// @param kept  where a model's weights and statistics are kept for the backward pass; null: they
/// are not.
template <class Real>
kernels::Attention<Real> attention_of(const Call& call, std::int64_t r, const Inputs& inputs,
                                      Real* kept) {
  const auto& model = call.models[static_cast<std::size_t>(r)];
  const auto& u = inputs.inverse_temperature();
  kernels::Attention<Real> attention;
  attention.sequences = call.sequences;
  attention.heads = call.heads;
  attention.tokens = call.tokens;
  attention.width = call.width;
  attention.score = model.score;
  attention.normalization = model.normalization.kernel<Real>();
  attention.q = call.vectors<const Real>(inputs.q(), r);
  attention.k = call.vectors<const Real>(inputs.k(), r);
  attention.v = call.vectors<const Real>(inputs.v(), r);
  if (model.direction >= 0) {
    attention.direction = inputs.directions().data_ptr<Real>() + model.direction * call.width;
  }
  attention.inverse_temperature = {u.data_ptr<Real>() + r * u.stride(0), u.stride(1), u.stride(2),
                                   u.stride(3)};
  attention.dropout = model.dropout;
  if (kept != nullptr) {
    attention.weights = kept + r * call.kept_size();
    attention.statistics = attention.weights + call.weights_size();
  }
  return attention;
}

/// Calls run(model, begin, end, workspace) for ranges of each model's heads, on LibTorch's threads.
template <class Real, class Run>
void for_heads(const Call& call, const Run& run) {
  const std::int64_t heads = call.num_heads();
  at::parallel_for(0, call.num_models() * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    const Scratch<Real> workspace(kernels::attention_workspace(call.tokens, call.width));
    while (begin < end) {
      const std::int64_t model = begin / heads;
      const std::int64_t last = std::min(end, (model + 1) * heads);
      run(model, begin - model * heads, last - model * heads, workspace.data());
      begin = last;
    }
  });
}

/// @param kept  (R, kept_size()); undefined: nothing is kept.
torch::Tensor run_forward(const Call& call, const Inputs& inputs, const torch::Tensor& kept) {
  auto output = at::empty(inputs.v().sizes(), inputs.v().options());
  AT_DISPATCH_FLOATING_TYPES(output.scalar_type(), "fused_attention", [&] {
    auto* kept_data = kept.defined() ? kept.data_ptr<scalar_t>() : nullptr;
    for_heads<scalar_t>(call, [&](auto r, auto begin, auto end, scalar_t* workspace) {
      kernels::attention_forward(attention_of<scalar_t>(call, r, inputs, kept_data),
                                 call.vectors<scalar_t>(output, r), begin, end, workspace);
    });
  });
  return output;
}

/// Sums over each row's heads: (N, B H, d) -> (N, d), in order.
template <class Real>
void add_up_heads(const Real* by_head, std::int64_t rows, std::int64_t heads, std::int64_t width,
                  Real* sums) {
  std::fill_n(sums, rows * width, Real{0});
  for (std::int64_t row = 0; row < rows; ++row, sums += width) {
    for (std::int64_t h = 0; h < heads; ++h, by_head += width) {
      for (std::int64_t e = 0; e < width; ++e) sums[e] += by_head[e];
    }
  }
}

class FusedAttention : public torch::autograd::Function<FusedAttention> {
 public:
  static torch::Tensor forward(AutogradContext* context, at::TensorList list,
                               const CallPointer& call) {
    const Inputs inputs(list);
    const auto kept = at::empty({call->num_models(), call->kept_size()}, inputs.v().options());
    auto saved = list.vec();
    saved.push_back(kept);
    context->save_for_backward(std::move(saved));
    context->saved_data["call"] = at::IValue::make_capsule(call);
    return run_forward(*call, inputs, kept);
  }

  static variable_list backward(AutogradContext* context, const variable_list& outer) {
    const auto saved = context->get_saved_variables();
    const auto& kept = saved.back();
    const auto list = at::TensorList(saved).slice(0, saved.size() - 1);
    const Inputs inputs(list);
    const auto capsule = context->saved_data["call"].toCapsule();
    const auto& call = static_cast<const Call&>(*capsule);
    const auto output = outer[0].contiguous();
    variable_list by_inputs;
    for (const auto& input : list) by_inputs.push_back(at::empty(input.sizes(), input.options()));
    const Inputs by(by_inputs);
    const std::int64_t num_directions = inputs.have_directions() ? by.directions().size(0) : 0;
    const std::int64_t direction_size = call.num_heads() * call.width;
    AT_DISPATCH_FLOATING_TYPES(output.scalar_type(), "fused_attention_backward", [&] {
      const Scratch<scalar_t> by_direction(num_directions * direction_size);
      for_heads<scalar_t>(call, [&](auto r, auto begin, auto end, scalar_t* workspace) {
        const auto& model = call.models[static_cast<std::size_t>(r)];
        kernels::AttentionGradients<scalar_t> gradients;
        gradients.output = call.vectors<const scalar_t>(output, r);
        gradients.q = call.vectors<scalar_t>(by.q(), r);
        gradients.k = call.vectors<scalar_t>(by.k(), r);
        gradients.v = call.vectors<scalar_t>(by.v(), r);
        gradients.inverse_temperature =
            by.inverse_temperature().data_ptr<scalar_t>() + r * call.num_heads() * call.tokens;
        if (model.direction >= 0) {
          gradients.direction = by_direction.data() + model.direction * direction_size;
        }
        kernels::attention_backward(
            attention_of<scalar_t>(call, r, inputs, kept.data_ptr<scalar_t>()), gradients, begin,
            end, workspace);
      });
      if (num_directions > 0) {
        add_up_heads(by_direction.data(), num_directions, call.num_heads(), call.width,
                     by.directions().data_ptr<scalar_t>());
      }
    });
    by_inputs.emplace_back();
    return by_inputs;
  }
};

void require_fitting(const std::vector<ModelAttention>& models, const AttentionVectors& vectors,
                     const torch::Tensor& inverse_temperature) {
  const auto& v = vectors.v;
  TORCH_CHECK(
      v.dim() == 4 && v.size(0) == static_cast<std::int64_t>(models.size()) &&
          vectors.q.sizes() == v.sizes() && vectors.k.sizes() == v.sizes() &&
          inverse_temperature.dim() == 5 && v.size(3) % inverse_temperature.size(2) == 0 &&
          inverse_temperature.sizes() ==
              at::IntArrayRef({v.size(0), v.size(1), inverse_temperature.size(2), v.size(2), 1}),
      "attention of ", models.size(), " models has q ", vectors.q.sizes(), ", k ",
      vectors.k.sizes(), ", values ", v.sizes(), " and temperatures ", inverse_temperature.sizes(),
      ", must be (R, B, T, H d) and (R, B, H, T, 1)");
  for (const auto& model : models) {
    const bool additive = model.score == kernels::Score::additive;
    const auto width = v.size(3) / inverse_temperature.size(2);
    TORCH_CHECK(additive == (model.direction >= 0) &&
                    (!additive || (vectors.directions.defined() &&
                                   model.direction < vectors.directions.size(0) &&
                                   vectors.directions.size(-1) == width)),
                "additive scores have a direction of ", width, " numbers, others none");
  }
}

}  // namespace

torch::Tensor fused_attention(const std::vector<ModelAttention>& models,
                              const AttentionVectors& vectors,
                              const torch::Tensor& inverse_temperature) {
  require_fitting(models, vectors, inverse_temperature);
  const auto call = c10::make_intrusive<Call>(models, inverse_temperature, vectors.v);
  const auto list = Inputs::list(vectors, inverse_temperature);
  const bool differentiated =
      at::GradMode::is_enabled() &&
      std::any_of(list.begin(), list.end(), [](const auto& x) { return x.requires_grad(); });
  if (differentiated) return FusedAttention::apply(at::TensorList(list), call);
  return run_forward(*call, Inputs(list), {});
}

}  // namespace nas::nn
