#include "ops/fused_attention.hpp"

#include <algorithm>
#include <utility>

#include <ATen/Dispatch.h>

#include "ops/array_op.hpp"
#include "ops/device_operations.hpp"
#include "ops/scratch.hpp"

namespace nas::nn {

namespace {

/// Where heads lie in (R, B, T, H d): side by side; and what is kept of them.
struct Layout {
  std::int64_t models, sequences, heads, tokens, width, kv_heads;
  /// Where what a model keeps for the backward pass begins. One more at the end.
  std::vector<std::int64_t> kept_begins{0};
  bool with_biases = false;

  Layout(const ArrayAttention& attention, const AttentionTensors& tensors)
      : models(tensors.q.size(0)),
        sequences(tensors.q.size(1)),
        heads(tensors.inverse_temperature.size(2)),
        tokens(tensors.q.size(2)),
        width(tensors.q.size(3) / heads),
        kv_heads(tensors.v.size(3) / width) {
    for (const auto& model : attention.of_models) {
      const auto kept =
          kernels::kept_size(tokens, model.window, model.globals, attention.pairs.has_value());
      kept_begins.push_back(kept_begins.back() + num_heads() * kept);
      with_biases = with_biases || model.distance_biases >= 0 || model.sums >= 0 ||
                    model.score == kernels::Score::distance;
    }
  }

  [[nodiscard]] std::int64_t num_heads() const { return sequences * heads; }  ///< of a model
  [[nodiscard]] std::int64_t group() const { return heads / kv_heads; }

  /// Those of model r.
  template <class Real>
  [[nodiscard]] kernels::HeadVectors<Real> vectors(const torch::Tensor& x, std::int64_t r) const {
    const auto row = x.size(3);
    return {x.data_ptr<std::remove_const_t<Real>>() + r * sequences * tokens * row, tokens * row,
            width, row};
  }
};

/// @param kept  of all models, for the backward pass; null: nothing is kept.
template <class Real>
kernels::Attention<Real> attention_of(const ArrayAttention& models, const Layout& layout,
                                      std::int64_t r, const AttentionTensors& tensors, Real* kept) {
  const auto& model = models.of_models[static_cast<std::size_t>(r)];
  const auto& u = tensors.inverse_temperature;
  kernels::Attention<Real> attention;
  attention.sequences = layout.sequences;
  attention.heads = layout.heads;
  attention.kv_heads = layout.kv_heads;
  attention.tokens = layout.tokens;
  attention.width = layout.width;
  attention.window = model.window;
  attention.globals = model.globals;
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
  attention.distance_biases = row_of<Real>(tensors.distance_biases, model.distance_biases);
  attention.sums = row_of<double>(tensors.sums, model.sums);
  attention.sinks = row_of<Real>(tensors.sinks, model.sinks);
  attention.dropout =
      models.masks.of(static_cast<std::size_t>(r), layout.heads * layout.tokens * layout.tokens);
  attention.pairs = models.pairs;
  if (kept != nullptr) attention.kept = kept + layout.kept_begins[static_cast<std::size_t>(r)];
  return attention;
}

/// Calls run(model, begin, end, workspace) for ranges of each model's heads, on LibTorch's threads.
/// Heads that share keys stay together.
template <class Real, class Run>
void for_heads(const Layout& layout, const Run& run) {
  const std::int64_t heads = layout.num_heads();
  const std::int64_t group = layout.group();
  at::parallel_for(0, layout.models * heads / group, 1, [&](std::int64_t begin, std::int64_t end) {
    const Scratch<Real> workspace(
        kernels::attention_workspace(layout.tokens, layout.width, layout.with_biases));
    begin *= group;
    end *= group;
    while (begin < end) {
      const std::int64_t model = begin / heads;
      const std::int64_t last = std::min(end, (model + 1) * heads);
      run(model, begin - model * heads, last - model * heads, workspace.data());
      begin = last;
    }
  });
}

/// @param kept  where to put what the backward pass needs; null: nowhere.
torch::Tensor attend(const ArrayAttention& attention, const AttentionTensors& tensors,
                     torch::Tensor* kept) {
  if (const auto* device = device_operations(tensors.v.device())) {
    return device->attention(attention, tensors, kept);
  }
  const Layout layout(attention, tensors);
  const auto options = tensors.q.options();
  if (kept != nullptr) *kept = at::empty({layout.kept_begins.back()}, options);
  auto output = at::empty(tensors.q.sizes(), options);
  AT_DISPATCH_FLOATING_TYPES(output.scalar_type(), "fused_attention", [&] {
    auto* kept_data = kept == nullptr ? nullptr : kept->data_ptr<scalar_t>();
    for_heads<scalar_t>(layout, [&](auto r, auto begin, auto end, scalar_t* workspace) {
      kernels::attention_forward(attention_of<scalar_t>(attention, layout, r, tensors, kept_data),
                                 layout.vectors<scalar_t>(output, r), begin, end, workspace);
    });
  });
  return output;
}

/// Sums over each row's parts: (N, parts, size) -> (N, size), in order.
template <class Real>
void add_up(const Real* by_part, std::int64_t rows, std::int64_t parts, std::int64_t size,
            Real* sums) {
  std::fill_n(sums, rows * size, Real{0});
  for (std::int64_t row = 0; row < rows; ++row, sums += size) {
    for (std::int64_t part = 0; part < parts; ++part, by_part += size) {
      for (std::int64_t e = 0; e < size; ++e) sums[e] += by_part[e];
    }
  }
}

/// Gradients w.r.t. rows of (N, ...) by parts of a row's size, until they are added up.
template <class Real>
class ByParts {
 public:
  /// @param by  undefined: they are not wanted.
  ByParts(const torch::Tensor& by, std::int64_t parts)
      : by_(by),
        rows_(by.defined() ? by.size(0) : 0),
        parts_(parts),
        size_(rows_ == 0 ? 0 : by.numel() / rows_),
        memory_(rows_ * parts * size_) {}

  [[nodiscard]] Real* row_or_null(std::int64_t row) const {
    return row < 0 || rows_ == 0 ? nullptr : memory_.data() + row * parts_ * size_;
  }
  void add_up() const {
    if (rows_ > 0) nn::add_up(memory_.data(), rows_, parts_, size_, by_.data_ptr<Real>());
  }

 private:
  const torch::Tensor& by_;
  std::int64_t rows_, parts_, size_;
  Scratch<Real> memory_;
};

/// Writes the gradients.
void attend_backward(const ArrayAttention& attention, const AttentionTensors& tensors,
                     const torch::Tensor& kept, const torch::Tensor& by_output,
                     const AttentionTensors& by) {
  if (const auto* device = device_operations(tensors.v.device())) {
    device->attention_backward(attention, tensors, kept, by_output, by);
    return;
  }
  const Layout layout(attention, tensors);
  AT_DISPATCH_FLOATING_TYPES(by_output.scalar_type(), "fused_attention_backward", [&] {
    // A head's gradients are vectors for directions, rows of a sequence's tables for biases.
    const ByParts<scalar_t> directions(by.directions, layout.num_heads());
    const ByParts<scalar_t> distance_biases(by.distance_biases, layout.sequences);
    const ByParts<scalar_t> sinks(by.sinks, layout.sequences);
    for_heads<scalar_t>(layout, [&](auto r, auto begin, auto end, scalar_t* workspace) {
      const auto& model = attention.of_models[static_cast<std::size_t>(r)];
      kernels::AttentionGradients<scalar_t> gradients;
      gradients.output = layout.vectors<const scalar_t>(by_output, r);
      gradients.q = layout.vectors<scalar_t>(by.q, r);
      gradients.k = layout.vectors<scalar_t>(by.k, r);
      gradients.v = layout.vectors<scalar_t>(by.v, r);
      gradients.inverse_temperature =
          by.inverse_temperature.data_ptr<scalar_t>() + r * layout.num_heads() * layout.tokens;
      gradients.direction = directions.row_or_null(model.direction);
      gradients.distance_biases = distance_biases.row_or_null(model.distance_biases);
      gradients.sums = row_of<double>(by.sums, model.sums);
      gradients.sinks = sinks.row_or_null(model.sinks);
      kernels::attention_backward(
          attention_of<scalar_t>(attention, layout, r, tensors, kept.data_ptr<scalar_t>()),
          gradients, begin, end, workspace);
    });
    directions.add_up();
    distance_biases.add_up();
    sinks.add_up();
  });
}

constexpr std::size_t kNeeded = 4;  ///< of AttentionTensors; the others may be undefined

Tensors as_list(const AttentionTensors& of) {
  return {of.q,    of.k,    of.v, of.inverse_temperature, of.directions, of.distance_biases,
          of.sums, of.sinks};
}

AttentionTensors in_places(const Tensors& list) {
  return {list[0], list[1], list[2], list[3], list[4], list[5], list[6], list[7]};
}

/// Of as_list().
struct FusedAttention {
  static constexpr bool kAnyStrides = true;
  ArrayAttention attention;
  std::vector<bool> wanted;  ///< whether gradients w.r.t. a tensor that need not be there are

  Tensors forward(const Tensors& in, Tensors& saved) const {
    torch::Tensor factors;
    auto output = attend(attention, in_places(in), &factors);
    saved = in;
    saved.push_back(factors);
    return {output};
  }

  Tensors backward(const Tensors& saved, const Tensors& by_out) const {
    Tensors by;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      by.push_back(i < kNeeded || wanted[i] ? unwritten(saved[i]) : torch::Tensor());
    }
    attend_backward(attention, in_places(saved), saved.back(), by_out[0].contiguous(),
                    in_places(by));
    return by;
  }
};

/// Whether x is (N, sizes...) of that type, and each of its rows is one model's.
///
/// @param row  row(model): a model's, or -1.
template <class RowOf>
void require_rows(const std::vector<ModelAttention>& models, const torch::Tensor& x,
                  at::IntArrayRef sizes, at::ScalarType type, const char* name,
                  const RowOf& row_of) {
  std::vector<std::int64_t> rows;
  for (const auto& model : models) {
    if (row_of(model) >= 0) rows.push_back(row_of(model));
  }
  std::sort(rows.begin(), rows.end());
  bool fits = rows.empty() || x.defined();
  if (x.defined()) {
    fits = x.dim() > 0 && x.sizes().slice(1) == sizes && x.scalar_type() == type &&
           x.size(0) == static_cast<std::int64_t>(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      fits = fits && rows[i] == static_cast<std::int64_t>(i);
    }
  }
  TORCH_CHECK(fits, name, " of ", rows.size(),
              " models must be of as many rows, each of one "
              "model, of sizes ",
              sizes, " and type ", type);
}

void require_fitting(const ArrayAttention& attention, const AttentionTensors& tensors) {
  const auto& q = tensors.q;
  const auto& v = tensors.v;
  const auto& u = tensors.inverse_temperature;
  const auto models = attention.of_models.size();
  TORCH_CHECK(q.dim() == 4 && q.size(0) == static_cast<std::int64_t>(models) && u.dim() == 5 &&
                  q.size(3) % u.size(2) == 0 && v.dim() == 4 && tensors.k.sizes() == v.sizes() &&
                  v.sizes().slice(0, 3) == q.sizes().slice(0, 3) && v.size(3) > 0 &&
                  q.size(3) % v.size(3) == 0 && v.size(3) % (q.size(3) / u.size(2)) == 0 &&
                  u.sizes() == at::IntArrayRef({q.size(0), q.size(1), u.size(2), q.size(2), 1}),
              "attention of ", models, " models has q ", q.sizes(), ", k ", tensors.k.sizes(),
              ", values ", v.sizes(), " and temperatures ", u.sizes(),
              ", must be (R, B, T, H d), (R, B, T, G d) and (R, B, H, T, 1)");
  TORCH_CHECK(attention.masks.of_models.size() == models, "attention of ", models, " models has ",
              attention.masks.of_models.size(), " masks");
  for (const auto& model : attention.of_models) {
    const bool additive = model.score == kernels::Score::additive;
    const auto width = q.size(3) / u.size(2);
    TORCH_CHECK(additive == (model.direction >= 0) &&
                    (!additive || (tensors.directions.defined() &&
                                   model.direction < tensors.directions.size(0) &&
                                   tensors.directions.size(-1) == width)),
                "additive scores have a direction of ", width, " numbers, others none");
    const bool with_sinks = model.normalization.kind() == kernels::RowNormalization::Kind::sink;
    TORCH_CHECK(with_sinks == (model.sinks >= 0), "softmax with sinks has sinks, others none");
    TORCH_CHECK(model.window >= 0 && model.globals >= 0, "a window of ", model.window, " with ",
                model.globals, " global keys");
  }
  const auto heads = u.size(2);
  const auto type = q.scalar_type();
  require_rows(attention.of_models, tensors.distance_biases, {heads, q.size(2)}, type,
               "biases by distance", [](const auto& model) { return model.distance_biases; });
  require_rows(attention.of_models, tensors.sums, {q.size(1), heads, q.size(2)}, at::kDouble,
               "sums", [](const auto& model) { return model.sums; });
  require_rows(attention.of_models, tensors.sinks, {heads}, type, "sinks",
               [](const auto& model) { return model.sinks; });
}

}  // namespace

torch::Tensor fused_attention(ArrayAttention attention, const AttentionTensors& tensors) {
  require_fitting(attention, tensors);
  auto list = as_list(tensors);
  std::vector<bool> wanted;
  for (auto& x : list) {
    wanted.push_back(x.defined() && x.requires_grad());
    if (x.defined() && !x.is_same(tensors.inverse_temperature)) x = x.contiguous();
  }
  const bool any_wanted = std::find(wanted.begin(), wanted.end(), true) != wanted.end();
  if (!at::GradMode::is_enabled() || !any_wanted)
    return attend(attention, in_places(list), nullptr);
  return array_op(FusedAttention{std::move(attention), std::move(wanted)}, list)[0];
}

}  // namespace nas::nn
