#include "ops/cuda_operations.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include <ATen/Dispatch.h>

#include "kernels/cuda/attention.hpp"
#include "kernels/cuda/batches.hpp"
#include "kernels/cuda/cross_entropy.hpp"
#include "kernels/cuda/elementwise.hpp"
#include "kernels/cuda/embedding.hpp"
#include "kernels/cuda/gates.hpp"
#include "kernels/cuda/layer_norm.hpp"
#include "kernels/cuda/output_layer.hpp"
#include "kernels/cuda/recurrence.hpp"
#include "ops/array_op.hpp"
#include "ops/product.hpp"

namespace nas::nn {

namespace {

/// @return the seeds of masks as kernels read them; null: nothing is dropped.
const std::uint64_t* seeds_of(const Masks& masks) {
  if (!masks.any_drops()) return nullptr;
  TORCH_CHECK(masks.seeds.defined(), "dropout on a device needs the seeds of its pass there");
  return reinterpret_cast<const std::uint64_t*>(masks.seeds.data_ptr<std::int64_t>());
}

/// What kernels compute in, of tensors some of which may be bfloat16.
at::ScalarType real_type(const torch::Tensor& x) {
  return x.scalar_type() == at::kBFloat16 ? at::kFloat : x.scalar_type();
}

/// Those of x (R, ...) from model `begin` on.
template <class Real>
cuda::Elements<Real> elements_of(const torch::Tensor& x, std::int64_t begin) {
  if (!x.defined()) return {};
  const auto bytes = static_cast<std::int64_t>(x.nbytes()) / x.size(0);
  return {static_cast<char*>(x.data_ptr()) + begin * bytes, x.scalar_type() == at::kBFloat16};
}

/// A map of the rows of x (R, ..., D).
template <class Real>
cuda::RowMap<Real> rows_of(kernels::Map map, const torch::Tensor& x) {
  const auto width = x.dim() > 1 ? x.size(-1) : 1;
  return {.map = map,
          .models = x.size(0),
          .rows = x.numel() / std::max<std::int64_t>(1, x.size(0) * width),
          .width = width};
}

template <class Real>
cuda::LayerNorm<Real> layer_norm_of(const torch::Tensor& x, const torch::Tensor& weight,
                                    const torch::Tensor& moments) {
  const auto rows = moments.size(1);
  return {.models = x.size(0),
          .rows = rows / x.size(0),
          .width = x.size(-1),
          .x = x.data_ptr<Real>(),
          .weight = weight.data_ptr<Real>(),
          .means = moments.data_ptr<Real>(),
          .inverse_deviations = moments.data_ptr<Real>() + rows};
}

/// Tokens of a model whose logits exist at once. It depends on nothing, since sums over tokens are
/// in the order of the pieces.
constexpr std::int64_t kTokensAtOnce = 512;
/// Of logits at once, unless those of one model are more: products, softmax and both gradients then
/// find them in the L2 cache of a large GPU (50 MB of an H100, of which a half is near).
constexpr std::int64_t kLogitsBytes = 25'000'000;

/// Some tokens of some models, whose logits are made together.
struct LogitsPiece {
  std::int64_t first_model, models;
  std::int64_t first, rows;

  /// The part of x (R, N, ...).
  [[nodiscard]] torch::Tensor of(const torch::Tensor& x) const {
    return x.narrow(0, first_model, models).narrow(1, first, rows);
  }
  /// The part of x (R, ...) of whole models.
  [[nodiscard]] torch::Tensor of_models(const torch::Tensor& x) const {
    return x.narrow(0, first_model, models);
  }
};

/// Calls run(piece) for all pieces, those of a model in the order of tokens.
template <class Run>
void for_pieces(const OutputLayer& layer, const Run& run) {
  const auto tokens = layer.tokens();
  const auto bytes = std::min(kTokensAtOnce, tokens) * layer.vocabulary() *
                     static_cast<std::int64_t>(layer.features.element_size());
  const auto at_once = std::max<std::int64_t>(1, kLogitsBytes / std::max<std::int64_t>(1, bytes));
  for (std::int64_t model = 0; model < layer.models(); model += at_once) {
    const auto models = std::min(at_once, layer.models() - model);
    for (std::int64_t first = 0; first < tokens; first += kTokensAtOnce) {
      run(LogitsPiece{model, models, first, std::min(kTokensAtOnce, tokens - first)});
    }
  }
}

/// The products of output layers, a piece at a time.
class PieceProducts {
 public:
  PieceProducts(const OutputLayer& layer, NumericalMode mode)
      : layer_(layer),
        features_(mode == NumericalMode::fast ? rounded_factor(layer.features) : layer.features),
        embedding_(mode == NumericalMode::fast ? rounded_factor(layer.embedding)
                                               : layer.embedding) {}

  /// (models, rows, V), of the type that was given, whatever they are rounded to.
  [[nodiscard]] torch::Tensor logits(const LogitsPiece& piece) const {
    return at::bmm(piece.of(features_), piece.of_models(embedding_).transpose(1, 2))
        .to(layer_.features.scalar_type());
  }

  /// From dL/d(logits): writes dL/d(features) and, by a model's first piece, dL/d(embedding), which
  /// the others add to.
  void backward(const torch::Tensor& by_logits, const LogitsPiece& piece) const {
    const auto gradient = by_logits.to(embedding_.scalar_type());
    auto by_features = piece.of(layer_.by_features);
    auto by_embedding = piece.of_models(layer_.by_embedding);
    const auto embedding = piece.of_models(embedding_);
    const auto features = piece.of(features_);
    const int times_before = piece.first == 0 ? 0 : 1;
    if (gradient.scalar_type() == by_features.scalar_type()) {
      by_features.baddbmm_(gradient, embedding, 0);
      by_embedding.baddbmm_(gradient.transpose(1, 2), features, times_before);
    } else {
      by_features.copy_(at::bmm(gradient, embedding));
      if (times_before == 0) by_embedding.zero_();
      by_embedding.add_(at::bmm(gradient.transpose(1, 2), features));
    }
  }

 private:
  const OutputLayer& layer_;
  torch::Tensor features_, embedding_;
};

template <class Logits>
cuda::CrossEntropy<Logits> cross_entropy_of(const torch::Tensor& logits,
                                            const torch::Tensor& targets) {
  return {.logits = logits.data_ptr<std::remove_const_t<Logits>>(),
          .targets = targets.data_ptr<std::int64_t>(),
          .models = logits.size(0),
          .rows = logits.size(1),
          .vocabulary = logits.size(2)};
}

/// Whether tensor cores take the output layer as one: their modes and types.
bool is_fused(const OutputLayer& layer, NumericalMode mode) {
  return (mode == NumericalMode::tf32 || mode == NumericalMode::fast) &&
         layer.features.scalar_type() == at::kFloat && cuda::output_loss_fits(layer.width());
}

/// Writes the gradients of the output layers and nll (R, N). @param weights  of a model's nll (R).
void fused_loss(const OutputLayer& layer, const torch::Tensor& targets, NumericalMode mode,
                const torch::Tensor& weights, const torch::Tensor& nll) {
  cuda::OutputLoss loss{
      .models = layer.models(),
      .tokens = layer.tokens(),
      .vocabulary = layer.vocabulary(),
      .width = layer.width(),
      .factors = mode == NumericalMode::fast ? cuda::Factors::bfloat16 : cuda::Factors::tf32,
      .features = layer.features.data_ptr<float>(),
      .embedding = layer.embedding.data_ptr<float>(),
      .targets = targets.data_ptr<std::int64_t>(),
      .weights = weights.data_ptr<float>(),
      .nll = nll.data_ptr<double>(),
      .by_features = layer.by_features.data_ptr<float>(),
      .by_embedding = layer.by_embedding.data_ptr<float>()};
  const auto scratch =
      at::empty({cuda::output_loss_scratch_bytes(loss)}, layer.features.options().dtype(at::kByte));
  loss.scratch = scratch.data_ptr();
  cuda::output_loss(loss, StreamOf(layer.features));
}

/// Likewise, by logits of some tokens at a time.
template <class Real>
void loss_by_pieces(const OutputLayer& layer, const torch::Tensor& targets, NumericalMode mode,
                    const torch::Tensor& weights, const torch::Tensor& nll) {
  const PieceProducts products(layer, mode);
  for_pieces(layer, [&](const LogitsPiece& piece) {
    const auto logits = products.logits(piece);
    const auto wanted = piece.of(targets).contiguous();
    const auto of_piece = at::empty_like(wanted, nll.options());
    cuda::cross_entropy_gradient(cross_entropy_of<Real>(logits, wanted),
                                 piece.of_models(weights).template data_ptr<Real>(),
                                 of_piece.template data_ptr<double>(), StreamOf(layer.features));
    piece.of(nll).copy_(of_piece);
    products.backward(logits, piece);
  });
}

/// @param in  terms, then logits.   @param like  of the size of a term.
template <class Real>
cuda::GatedSums<Real> sums_of(const GatedSums& sums, const Tensors& in, const torch::Tensor& like) {
  cuda::GatedSums<Real> given{
      .sums = static_cast<const kernels::GatedSum*>(sums.on_device.data_ptr()),
      .models = like.size(0),
      .size = like.numel() / like.size(0),
      .logits = data_or_null<Real>(in.back())};
  for (std::size_t t = 0; t < given.terms.size(); ++t) given.terms[t] = data_or_null<Real>(in[t]);
  return given;
}

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
  const auto width = q.size(3) / heads;
  const auto kv_heads = tensors.v.size(3) / width;
  const auto rows = [](const torch::Tensor& x) { return x.defined() ? x.size(0) : 0; };
  cuda::Attention<Real> attention{
      .models = q.size(0),
      .sequences = q.size(1),
      .heads = heads,
      .kv_heads = kv_heads,
      .tokens = q.size(2),
      .width = width,
      .mechanisms = static_cast<const cuda::Mechanism*>(models.on_device.data_ptr()),
      .seeds = seeds_of(models.masks),
      .site = models.masks.site,
      .first = models.masks.first_sequence * heads * q.size(2) * q.size(2),
      .q = vectors<const Real>(q, heads),
      .k = vectors<const Real>(tensors.k, kv_heads),
      .v = vectors<const Real>(tensors.v, kv_heads),
      .inverse_temperature = {u.data_ptr<Real>(), u.stride(0), u.stride(1), u.stride(2),
                              u.stride(3)},
      .directions = data_or_null<Real>(tensors.directions),
      .num_directions = tensors.directions.defined() ? tensors.directions.numel() / width : 0,
      .distance_biases = data_or_null<Real>(tensors.distance_biases),
      .num_distance_biases = rows(tensors.distance_biases),
      .sums = data_or_null<double>(tensors.sums),
      .num_sums = rows(tensors.sums),
      .sinks = data_or_null<Real>(tensors.sinks),
      .num_sinks = rows(tensors.sinks),
      .rounds_factors = models.rounds_factors};
  if (kept.defined()) {
    attention.weights = kept.data_ptr<Real>();
    attention.statistics = attention.weights + cuda::attention_weights_size(attention);
  }
  return attention;
}

/// Those of (R, B, H, T, n).
template <class Real>
cuda::HeadVectors<Real> head_vectors(const torch::Tensor& x) {
  if (!x.defined()) return {};
  return {x.data_ptr<std::remove_const_t<Real>>(), x.stride(0), x.stride(1), x.stride(2),
          x.stride(3)};
}

/// @param in  as DeviceOperations::recurrence() takes it.
template <class Real>
cuda::Recurrence<Real> recurrence_of(const kernels::RecurrenceShape& shape, const Tensors& in,
                                     const torch::Tensor& states, const torch::Tensor& updates) {
  return {.models = in[0].size(0),
          .sequences = in[0].size(1),
          .heads = in[0].size(2),
          .shape = shape,
          .queries = head_vectors<const Real>(in[0]),
          .keys = head_vectors<const Real>(in[1]),
          .values = head_vectors<const Real>(in[2]),
          .log_decays = head_vectors<const Real>(in[3]),
          .erased = head_vectors<const Real>(in[4]),
          .states = states.data_ptr<Real>(),
          .updates = updates.data_ptr<Real>()};
}

constexpr std::int64_t kLargestInt32 = std::numeric_limits<std::int32_t>::max();

std::uint64_t* bits_of(const torch::Tensor& seeds) {
  return reinterpret_cast<std::uint64_t*>(seeds.data_ptr<std::int64_t>());
}

/// The operations by the kernels of src/kernels/cuda. Sums are in a fixed order.
class CudaOperations final : public DeviceOperations {
 public:
  void map(kernels::Map map, const Tensors& in, const MapBias& bias, const torch::Tensor& out,
           const Masks& masks) const override {
    const auto& like = in[0];
    const auto models = std::ssize(masks.of_models);
    const StreamOf stream(like);
    const auto* seeds = seeds_of(masks);
    AT_DISPATCH_FLOATING_TYPES(real_type(like), "mapped", [&] {
      auto rows = rows_of<scalar_t>(map, like);
      const auto scratch =
          bias.sums.defined()
              ? at::empty({models, cuda::map_scratch_size(rows) / models}, bias.sums.options())
              : torch::Tensor();
      // Models with one share of dropout at a time.
      for (std::int64_t begin = 0, end = 0; begin < models; begin = end) {
        const auto& mask = masks.of_models[static_cast<std::size_t>(begin)];
        while (end < models &&
               masks.of_models[static_cast<std::size_t>(end)].threshold == mask.threshold) {
          ++end;
        }
        rows.models = end - begin;
        rows.x = elements_of<scalar_t>(like, begin);
        if (in.size() > 1) rows.y = elements_of<scalar_t>(in[1], begin);
        rows.bias = row_of<scalar_t>(bias.added, begin);
        rows.out = elements_of<scalar_t>(out, begin);
        rows.sums = row_of<scalar_t>(bias.sums, begin);
        rows.scratch = row_of<scalar_t>(scratch, begin);
        rows.dropout = {seeds == nullptr ? nullptr : seeds + begin, masks.site, mask.threshold,
                        mask.scale, masks.of(static_cast<std::size_t>(begin), like).first};
        cuda::map_rows(rows, stream);
      }
    });
  }

  void layer_norm(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                  double epsilon, const torch::Tensor& y,
                  const torch::Tensor& moments) const override {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "layer_norm", [&] {
      cuda::layer_norm(layer_norm_of<scalar_t>(x, weight, moments), bias.data_ptr<scalar_t>(),
                       epsilon, y.data_ptr<scalar_t>(), StreamOf(x));
    });
  }

  void layer_norm_backward(const torch::Tensor& x, const torch::Tensor& weight,
                           const torch::Tensor& moments, const ByNorm& given,
                           const LayerNormGradients& by) const override {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "layer_norm_backward", [&] {
      const auto rows = layer_norm_of<scalar_t>(x, weight, moments);
      const auto scratch = at::empty({cuda::layer_norm_scratch_size(rows)}, x.options());
      cuda::layer_norm_backward<scalar_t>(rows,
                                          {.y = given.y.data_ptr<scalar_t>(),
                                           .beside = data_or_null<scalar_t>(given.beside),
                                           .x = by.x.data_ptr<scalar_t>(),
                                           .weight = by.weight.data_ptr<scalar_t>(),
                                           .bias = by.bias.data_ptr<scalar_t>(),
                                           .scratch = scratch.data_ptr<scalar_t>()},
                                          StreamOf(x));
    });
  }

  void embedding_backward(const torch::Tensor& tokens, const torch::Tensor& by_rows,
                          const torch::Tensor& by_matrices) const override {
    // Equal tokens stay in the order of their places. Half the digits take half the time.
    const auto by_token = at::sort(tokens.flatten(1).to(at::kInt), /*stable=*/true,
                                   /*dim=*/1, /*descending=*/false);
    const auto& sorted = std::get<0>(by_token);
    const auto& places = std::get<1>(by_token);
    AT_DISPATCH_FLOATING_TYPES(by_rows.scalar_type(), "embedding_backward", [&] {
      cuda::embedding_backward({.tokens = sorted.template data_ptr<std::int32_t>(),
                                .places = places.template data_ptr<std::int64_t>(),
                                .models = sorted.size(0),
                                .num_tokens = sorted.size(1),
                                .vocabulary = by_matrices.size(1),
                                .width = by_matrices.size(2)},
                               by_rows.data_ptr<scalar_t>(), by_matrices.data_ptr<scalar_t>(),
                               StreamOf(by_rows));
    });
  }

  [[nodiscard]] torch::Tensor linear_cross_entropy(const OutputLayer& layer,
                                                   const torch::Tensor& targets,
                                                   const torch::Tensor& counted,
                                                   NumericalMode mode) const override {
    const auto models = layer.models();
    const auto tokens = layer.tokens();
    const auto weights = at::empty({models}, layer.features.options());
    const auto losses = at::empty_like(weights);
    const auto nll = at::empty({models, tokens}, layer.features.options().dtype(at::kDouble));
    const StreamOf stream(layer.features);
    AT_DISPATCH_FLOATING_TYPES(weights.scalar_type(), "linear_cross_entropy", [&] {
      cuda::mean_weights(counted.data_ptr<std::int64_t>(), models, counted.size(1),
                         weights.data_ptr<scalar_t>(), stream);
      if (is_fused(layer, mode)) {
        fused_loss(layer, targets, mode, weights, nll);
      } else {
        loss_by_pieces<scalar_t>(layer, targets, mode, weights, nll);
      }
      cuda::weighted_sums(nll.data_ptr<double>(), models, tokens, weights.data_ptr<scalar_t>(),
                          losses.data_ptr<scalar_t>(), stream);
    });
    return losses;
  }

  void scale(const torch::Tensor& x, const torch::Tensor& factors) const override {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", [&] {
      cuda::scale_models(x.data_ptr<scalar_t>(), x.size(0), x.numel() / x.size(0),
                         factors.data_ptr<scalar_t>(), StreamOf(x));
    });
  }

  [[nodiscard]] TokenScores score_tokens(const OutputLayer& layer, const torch::Tensor& targets,
                                         NumericalMode mode) const override {
    const PieceProducts products(layer, mode);
    const TokenScores scores{at::empty(targets.sizes(), targets.options().dtype(at::kDouble)),
                             at::empty(targets.sizes(), targets.options().dtype(at::kBool))};
    const StreamOf stream(layer.features);
    for_pieces(layer, [&](const LogitsPiece& piece) {
      const auto logits = products.logits(piece);
      const auto wanted = piece.of(targets).contiguous();
      const auto nll = at::empty(wanted.sizes(), scores.nll.options());
      const auto correct = at::empty(wanted.sizes(), scores.correct.options());
      AT_DISPATCH_FLOATING_TYPES(layer.features.scalar_type(), "score_tokens", [&] {
        cuda::cross_entropy(cross_entropy_of<const scalar_t>(logits, wanted),
                            nll.data_ptr<double>(), correct.data_ptr<bool>(), stream);
      });
      piece.of(scores.nll).copy_(nll);
      piece.of(scores.correct).copy_(correct);
    });
    return scores;
  }

  void gated_sum(const GatedSums& sums, const Tensors& in,
                 const torch::Tensor& out) const override {
    AT_DISPATCH_FLOATING_TYPES(out.scalar_type(), "gated_sum", [&] {
      cuda::gated_sum(sums_of<scalar_t>(sums, in, out), out.data_ptr<scalar_t>(), StreamOf(out));
    });
  }

  void gated_sum_backward(const GatedSums& sums, const Tensors& in, const torch::Tensor& by_sum,
                          const Tensors& by) const override {
    AT_DISPATCH_FLOATING_TYPES(by_sum.scalar_type(), "gated_sum_backward", [&] {
      kernels::GatedTerms<scalar_t> by_terms{};
      for (std::size_t t = 0; t < by_terms.size(); ++t) by_terms[t] = data_or_null<scalar_t>(by[t]);
      cuda::gated_sum_backward(sums_of<scalar_t>(sums, in, by_sum), by_sum.data_ptr<scalar_t>(),
                               data_or_null<scalar_t>(by.back()), by_terms, StreamOf(by_sum));
    });
  }

  [[nodiscard]] bool attention_fits(const torch::Tensor& q, std::int64_t heads) const override {
    const StreamOf stream(q);
    const auto width = q.size(3) / heads;
    return q.scalar_type() == at::kDouble ? cuda::attention_fits<double>(q.size(2), width)
                                          : cuda::attention_fits<float>(q.size(2), width);
  }

  [[nodiscard]] bool has_form_of(const kernels::RowNormalization& normalization) const override {
    return normalization.kind() != kernels::RowNormalization::Kind::own;
  }

  [[nodiscard]] torch::Tensor described(const std::vector<ModelAttention>& models,
                                        const Masks& masks, torch::Device device) const override {
    std::vector<cuda::Mechanism> mechanisms;
    const auto small = [](std::int64_t x) {
      return static_cast<std::int32_t>(std::min<std::int64_t>(x, kLargestInt32));
    };
    for (std::size_t r = 0; r < models.size(); ++r) {
      const auto& model = models[r];
      mechanisms.push_back({.score = model.score,
                            .normalization = model.normalization.kind(),
                            .direction = small(model.direction),
                            .dropout_threshold = masks.of_models[r].threshold,
                            .dropout_scale = masks.of_models[r].scale,
                            .seen = {small(model.window), small(model.globals)},
                            .distance_biases = small(model.distance_biases),
                            .sums = small(model.sums),
                            .sinks = small(model.sinks)});
    }
    return on_device(mechanisms, device);
  }

  [[nodiscard]] torch::Tensor attention(const ArrayAttention& models,
                                        const AttentionTensors& tensors,
                                        torch::Tensor* kept) const override {
    auto output = at::empty(tensors.q.sizes(), tensors.q.options());
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

  void attention_backward(const ArrayAttention& models, const AttentionTensors& tensors,
                          const torch::Tensor& kept, const torch::Tensor& by_output,
                          const AttentionTensors& by) const override {
    AT_DISPATCH_FLOATING_TYPES(by_output.scalar_type(), "attention_backward", [&] {
      const auto attention = attention_of<scalar_t>(models, tensors, kept);
      const auto heads = attention.heads;
      const auto kv_heads = attention.kv_heads;
      const auto scratch =
          at::empty({cuda::attention_scratch_size(attention)}, by_output.options());
      cuda::attention_backward<scalar_t>(
          attention,
          {.output = vectors<const scalar_t>(by_output, heads),
           .q = vectors<scalar_t>(by.q, heads),
           .k = vectors<scalar_t>(by.k, kv_heads),
           .v = vectors<scalar_t>(by.v, kv_heads),
           .inverse_temperature = by.inverse_temperature.data_ptr<scalar_t>(),
           .directions = data_or_null<scalar_t>(by.directions),
           .distance_biases = data_or_null<scalar_t>(by.distance_biases),
           .sums = data_or_null<double>(by.sums),
           .sinks = data_or_null<scalar_t>(by.sinks),
           .scratch = scratch.data_ptr<scalar_t>()},
          StreamOf(by_output));
    });
  }

  [[nodiscard]] bool recurrence_fits(const kernels::RecurrenceShape& shape,
                                     at::ScalarType type) const override {
    return type == at::kDouble ? cuda::recurrence_fits<double>(shape)
                               : cuda::recurrence_fits<float>(shape);
  }

  void recurrence(const kernels::RecurrenceShape& shape, const Tensors& in,
                  const torch::Tensor& states, const torch::Tensor& updates,
                  const torch::Tensor& outputs) const override {
    AT_DISPATCH_FLOATING_TYPES(outputs.scalar_type(), "recurrence", [&] {
      cuda::recurrence(recurrence_of<scalar_t>(shape, in, states, updates),
                       head_vectors<scalar_t>(outputs), StreamOf(outputs));
    });
  }

  void recurrence_backward(const kernels::RecurrenceShape& shape, const Tensors& in,
                           const torch::Tensor& states, const torch::Tensor& updates,
                           const torch::Tensor& by_outputs, const torch::Tensor& by_state,
                           const Tensors& by) const override {
    AT_DISPATCH_FLOATING_TYPES(by_outputs.scalar_type(), "recurrence_backward", [&] {
      cuda::recurrence_backward<scalar_t>(recurrence_of<scalar_t>(shape, in, states, updates),
                                          {.outputs = head_vectors<const scalar_t>(by_outputs),
                                           .state = data_or_null<scalar_t>(by_state),
                                           .queries = head_vectors<scalar_t>(by[0]),
                                           .keys = head_vectors<scalar_t>(by[1]),
                                           .values = head_vectors<scalar_t>(by[2]),
                                           .log_decays = head_vectors<scalar_t>(by[3]),
                                           .erased = head_vectors<scalar_t>(by[4])},
                                          StreamOf(by_outputs));
    });
  }

  [[nodiscard]] std::unique_ptr<DeviceAdamW> adamw(std::vector<TrainedParameter> parameters,
                                                   std::int64_t models) const override {
    return cuda_adamw(std::move(parameters), models);
  }

  void begin_step(const StepTables& tables, const StepNumbers& current) const override {
    const auto& [seeds, rates] = tables.numbers;
    cuda::begin_step({.seeds = bits_of(seeds),
                      .rates = rates.data_ptr<double>(),
                      .row = tables.row.data_ptr<std::int64_t>(),
                      .models = current.seeds.size(0),
                      .current_seeds = bits_of(current.seeds),
                      .current_rates = current.learning_rates.data_ptr<double>()},
                     StreamOf(current.seeds));
  }

  void read_batches(const DeviceWindows& windows, const DeviceOrders& orders,
                    const torch::Tensor& input, const torch::Tensor& target) const override {
    cuda::read_batches(
        {.tokens = windows.tokens.data_ptr<std::int32_t>(),
         .num_tokens = windows.tokens.numel(),
         .starts = windows.starts.data_ptr<std::int64_t>(),
         .num_windows = windows.starts.numel(),
         .length = windows.length,
         .last_target = windows.last_target,
         .targets = windows.targets.defined() ? windows.targets.data_ptr<std::int32_t>() : nullptr},
        {.permutations = orders.permutations.data_ptr<std::int32_t>(),
         .offsets = orders.offsets.data_ptr<std::int64_t>(),
         .steps = orders.steps.data_ptr<std::int64_t>(),
         .models = input.size(0),
         .batch_size = input.size(1)},
        input.data_ptr<std::int64_t>(), target.data_ptr<std::int64_t>(), StreamOf(input));
  }

  void advance(const torch::Tensor& counters) const override {
    cuda::advance(counters.data_ptr<std::int64_t>(), counters.numel(), StreamOf(counters));
  }

  [[nodiscard]] std::unique_ptr<DeviceGraph> graph(torch::Device device) const override {
    return new_graph(device);
  }
};

}  // namespace

const DeviceOperations& cuda_operations() {
  static const CudaOperations operations;
  return operations;
}

}  // namespace nas::nn
