#include "ops/fused_attention.hpp"

#include <algorithm>
#include <utility>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include "ops/device_operations.hpp"
#include "ops/kept.hpp"
#include "ops/scratch.hpp"

namespace nas::nn {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Where heads lie in (R, B, T, H d): side by side.
struct Layout {
  std::int64_t models, sequences, heads, tokens, width;

  explicit Layout(const AttentionTensors& tensors)
      : models(tensors.v.size(0)),
        sequences(tensors.v.size(1)),
        heads(tensors.inverse_temperature.size(2)),
        tokens(tensors.v.size(2)),
        width(tensors.v.size(3) / heads) {}

  [[nodiscard]] std::int64_t num_heads() const { return sequences * heads; }  ///< of a model
  [[nodiscard]] std::int64_t model_size() const { return num_heads() * tokens * width; }
  /// What a model keeps for the backward pass: all heads' weights, then all their statistics.
  [[nodiscard]] std::int64_t weights_size() const {
    return num_heads() * kernels::weights_size(tokens);
  }
  [[nodiscard]] std::int64_t kept_size() const { return weights_size() + num_heads() * tokens; }

  /// Those of model r.
  template <class Real>
  [[nodiscard]] kernels::HeadVectors<Real> vectors(const torch::Tensor& x, std::int64_t r) const {
    return {x.data_ptr<std::remove_const_t<Real>>() + r * model_size(), tokens * heads * width,
            width, heads * width};
  }
};

/// @param kept  where a model's weights and statistics are kept for the backward pass; null: they
/// are not.
template <class Real>
kernels::Attention<Real> attention_of(const ArrayAttention& models, const Layout& layout,
                                      std::int64_t r, const AttentionTensors& tensors, Real* kept) {
  const auto& model = models.of_models[static_cast<std::size_t>(r)];
  const auto& u = tensors.inverse_temperature;
  kernels::Attention<Real> attention;
  attention.sequences = layout.sequences;
  attention.heads = layout.heads;
  attention.tokens = layout.tokens;
  attention.width = layout.width;
  attention.score = model.score;
  attention.normalization = model.normalization.kernel<Real>();
  attention.q = layout.vectors<const Real>(tensors.q, r);
  attention.k = layout.vectors<const Real>(tensors.k, r);
  attention.v = layout.vectors<const Real>(tensors.v, r);
  if (model.direction >= 0) {
    attention.direction = tensors.directions.data_ptr<Real>() + model.direction * layout.width;
  }
  attention.inverse_temperature = {u.data_ptr<Real>() + r * u.stride(0), u.stride(1), u.stride(2),
                                   u.stride(3)};
  attention.dropout = models.masks.of_models[static_cast<std::size_t>(r)];
  if (kept != nullptr) {
    attention.weights = kept + r * layout.kept_size();
    attention.statistics = attention.weights + layout.weights_size();
  }
  return attention;
}

/// Calls run(model, begin, end, workspace) for ranges of each model's heads, on LibTorch's threads.
template <class Real, class Run>
void for_heads(const Layout& layout, const Run& run) {
  const std::int64_t heads = layout.num_heads();
  at::parallel_for(0, layout.models * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    const Scratch<Real> workspace(kernels::attention_workspace(layout.tokens, layout.width));
    while (begin < end) {
      const std::int64_t model = begin / heads;
      const std::int64_t last = std::min(end, (model + 1) * heads);
      run(model, begin - model * heads, last - model * heads, workspace.data());
      begin = last;
    }
  });
}

/// @param kept  where to put what the backward pass needs, (R, kept_size()); null: nowhere.
torch::Tensor attend(const ArrayAttention& attention, const AttentionTensors& tensors,
                     torch::Tensor* kept) {
  if (const auto* device = device_operations(tensors.v.device())) {
    return device->attention(attention, tensors, kept);
  }
  const Layout layout(tensors);
  const auto options = tensors.v.options();
  if (kept != nullptr) *kept = at::empty({layout.models, layout.kept_size()}, options);
  auto output = at::empty(tensors.v.sizes(), options);
  AT_DISPATCH_FLOATING_TYPES(output.scalar_type(), "fused_attention", [&] {
    auto* kept_data = kept == nullptr ? nullptr : kept->data_ptr<scalar_t>();
    for_heads<scalar_t>(layout, [&](auto r, auto begin, auto end, scalar_t* workspace) {
      kernels::attention_forward(attention_of<scalar_t>(attention, layout, r, tensors, kept_data),
                                 layout.vectors<scalar_t>(output, r), begin, end, workspace);
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

/// Writes the gradients.
void attend_backward(const ArrayAttention& attention, const AttentionTensors& tensors,
                     const torch::Tensor& kept, const torch::Tensor& by_output,
                     const AttentionTensors& by) {
  if (const auto* device = device_operations(tensors.v.device())) {
    device->attention_backward(attention, tensors, kept, by_output, by);
    return;
  }
  const Layout layout(tensors);
  const std::int64_t num_directions = by.directions.defined() ? by.directions.size(0) : 0;
  const std::int64_t direction_size = layout.num_heads() * layout.width;
  AT_DISPATCH_FLOATING_TYPES(by_output.scalar_type(), "fused_attention_backward", [&] {
    const Scratch<scalar_t> by_direction(num_directions * direction_size);
    for_heads<scalar_t>(layout, [&](auto r, auto begin, auto end, scalar_t* workspace) {
      const auto& model = attention.of_models[static_cast<std::size_t>(r)];
      kernels::AttentionGradients<scalar_t> gradients;
      gradients.output = layout.vectors<const scalar_t>(by_output, r);
      gradients.q = layout.vectors<scalar_t>(by.q, r);
      gradients.k = layout.vectors<scalar_t>(by.k, r);
      gradients.v = layout.vectors<scalar_t>(by.v, r);
      gradients.inverse_temperature =
          by.inverse_temperature.data_ptr<scalar_t>() + r * layout.num_heads() * layout.tokens;
      if (model.direction >= 0) {
        gradients.direction = by_direction.data() + model.direction * direction_size;
      }
      kernels::attention_backward(
          attention_of<scalar_t>(attention, layout, r, tensors, kept.data_ptr<scalar_t>()),
          gradients, begin, end, workspace);
    });
    if (num_directions > 0) {
      add_up_heads(by_direction.data(), num_directions, layout.num_heads(), layout.width,
                   by.directions.data_ptr<scalar_t>());
    }
  });
}

/// Functions of autograd take no undefined tensors: directions may be missing at the end.
variable_list as_list(const AttentionTensors& tensors) {
  variable_list list{tensors.q.contiguous(), tensors.k.contiguous(), tensors.v.contiguous(),
                     tensors.inverse_temperature};
  if (tensors.directions.defined()) list.push_back(tensors.directions.contiguous());
  return list;
}

AttentionTensors in_places(at::TensorList list) {
  return {list[0], list[1], list[2], list[3], list.size() == 5 ? list[4] : torch::Tensor()};
}

class FusedAttention : public torch::autograd::Function<FusedAttention> {
 public:
  static torch::Tensor forward(AutogradContext* context, at::TensorList list,
                               const KeptPointer<ArrayAttention>& attention) {
    torch::Tensor factors;
    auto output = attend(attention->value, in_places(list), &factors);
    auto saved = list.vec();
    saved.push_back(factors);
    context->save_for_backward(std::move(saved));
    keep(context, attention);
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outer) {
    const auto saved = context->get_saved_variables();
    const auto list = at::TensorList(saved).slice(0, saved.size() - 1);
    const auto& attention = kept<ArrayAttention>(context);
    const auto by_output = outer[0].contiguous();
    variable_list by_inputs;
    for (const auto& input : list) by_inputs.push_back(at::empty(input.sizes(), input.options()));
    attend_backward(attention, in_places(list), saved.back(), by_output, in_places(by_inputs));
    by_inputs.emplace_back();
    return by_inputs;
  }
};

void require_fitting(const ArrayAttention& attention, const AttentionTensors& tensors) {
  const auto& v = tensors.v;
  const auto& u = tensors.inverse_temperature;
  const auto models = attention.of_models.size();
  TORCH_CHECK(v.dim() == 4 && v.size(0) == static_cast<std::int64_t>(models) &&
                  tensors.q.sizes() == v.sizes() && tensors.k.sizes() == v.sizes() &&
                  u.dim() == 5 && v.size(3) % u.size(2) == 0 &&
                  u.sizes() == at::IntArrayRef({v.size(0), v.size(1), u.size(2), v.size(2), 1}),
              "attention of ", models, " models has q ", tensors.q.sizes(), ", k ",
              tensors.k.sizes(), ", values ", v.sizes(), " and temperatures ", u.sizes(),
              ", must be (R, B, T, H d) and (R, B, H, T, 1)");
  TORCH_CHECK(attention.masks.of_models.size() == models, "attention of ", models, " models has ",
              attention.masks.of_models.size(), " masks");
  for (const auto& model : attention.of_models) {
    const bool additive = model.score == kernels::Score::additive;
    const auto width = v.size(3) / u.size(2);
    TORCH_CHECK(additive == (model.direction >= 0) &&
                    (!additive || (tensors.directions.defined() &&
                                   model.direction < tensors.directions.size(0) &&
                                   tensors.directions.size(-1) == width)),
                "additive scores have a direction of ", width, " numbers, others none");
  }
}

}  // namespace

torch::Tensor fused_attention(ArrayAttention attention, const AttentionTensors& tensors) {
  require_fitting(attention, tensors);
  const auto list = as_list(tensors);
  const bool differentiated =
      at::GradMode::is_enabled() &&
      std::any_of(list.begin(), list.end(), [](const auto& x) { return x.requires_grad(); });
  if (!differentiated) return attend(attention, in_places(list), nullptr);
  return FusedAttention::apply(at::TensorList(list), make_kept(std::move(attention)));
}

}  // namespace nas::nn
