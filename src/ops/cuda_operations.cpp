#include "ops/cuda_operations.hpp"

#include <algorithm>

#include <ATen/Dispatch.h>

#include "cuda/cross_entropy.hpp"
#include "cuda/elementwise.hpp"
#include "cuda/embedding.hpp"
#include "cuda/layer_norm.hpp"
#include "ops/product.hpp"

namespace nas::nn {

namespace {

/// A map of contiguous tensors (R, ...), of the models with one share of dropout at a time:
/// map(in..., out, models, elements of a model, dropout, stream).
template <class Map, class... In>
torch::Tensor mapped(const Map& map, const Masks& masks, const torch::Tensor& x,
                     const In&... others) {
  const auto& of_models = masks.of_models;
  const auto models = static_cast<std::int64_t>(of_models.size());
  TORCH_CHECK(x.size(0) == models, models, " masks do not fit ", x.sizes());
  auto out = at::empty_like(x);
  const std::int64_t size = x.numel() / models;
  const StreamOf stream(x);
  const auto* seeds = seeds_of(masks);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "mapped", [&] {
    for (std::int64_t begin = 0, end = 0; begin < models; begin = end) {
      const auto& mask = of_models[static_cast<std::size_t>(begin)];
      while (end < models && of_models[static_cast<std::size_t>(end)].threshold == mask.threshold) {
        ++end;
      }
      const auto at = begin * size;
      const cuda::Dropout dropout{seeds == nullptr ? nullptr : seeds + begin, masks.site,
                                  mask.threshold, mask.scale};
      map(x.data_ptr<scalar_t>() + at, others.template data_ptr<scalar_t>() + at...,
          out.data_ptr<scalar_t>() + at, end - begin, size, dropout, stream);
    }
  });
  return out;
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

  /// From dL/d(logits): writes dL/d(features), adds dL/d(embedding).
  void backward(const torch::Tensor& by_logits, const LogitsPiece& piece) const {
    const auto gradient = by_logits.to(embedding_.scalar_type());
    piece.of(layer_.by_features).copy_(at::bmm(gradient, piece.of_models(embedding_)));
    piece.of_models(layer_.by_embedding)
        .add_(at::bmm(gradient.transpose(1, 2), piece.of(features_)));
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

}  // namespace

const std::uint64_t* seeds_of(const Masks& masks) {
  if (!masks.any_drops()) return nullptr;
  TORCH_CHECK(masks.seeds.defined(), "dropout on a device needs the seeds of its pass there");
  return reinterpret_cast<const std::uint64_t*>(masks.seeds.data_ptr<std::int64_t>());
}

torch::Tensor CudaOperations::dropped(const torch::Tensor& x, const Masks& masks) const {
  return mapped(
      [](const auto* in, auto* out, const auto&... rest) { cuda::drop(in, out, rest...); }, masks,
      x);
}

torch::Tensor CudaOperations::add_dropped(const torch::Tensor& residual, const torch::Tensor& x,
                                          const Masks& masks) const {
  return mapped([](const auto* in, const auto* stream, auto* out,
                   const auto&... given) { cuda::add_dropped(in, stream, out, given...); },
                masks, x, residual);
}

torch::Tensor CudaOperations::dropped_gelu(const torch::Tensor& x, const Masks& masks) const {
  return mapped(
      [](const auto* in, auto* out, const auto&... rest) { cuda::gelu(in, out, rest...); }, masks,
      x);
}

torch::Tensor CudaOperations::dropped_gelu_backward(const torch::Tensor& x,
                                                    const torch::Tensor& gradient,
                                                    const Masks& masks) const {
  return mapped([](const auto* in, const auto* by_out, auto* out,
                   const auto&... rest) { cuda::gelu_backward(in, by_out, out, rest...); },
                masks, x, gradient);
}

void CudaOperations::layer_norm(const torch::Tensor& x, const torch::Tensor& weight,
                                const torch::Tensor& bias, double epsilon, const torch::Tensor& y,
                                const torch::Tensor& moments) const {
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "layer_norm", [&] {
    cuda::layer_norm(layer_norm_of<scalar_t>(x, weight, moments), bias.data_ptr<scalar_t>(),
                     epsilon, y.data_ptr<scalar_t>(), StreamOf(x));
  });
}

void CudaOperations::layer_norm_backward(const torch::Tensor& x, const torch::Tensor& weight,
                                         const torch::Tensor& moments, const torch::Tensor& by_y,
                                         const torch::Tensor& by_x, const torch::Tensor& by_weight,
                                         const torch::Tensor& by_bias) const {
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "layer_norm_backward", [&] {
    const auto rows = layer_norm_of<scalar_t>(x, weight, moments);
    const auto scratch = at::empty({cuda::layer_norm_scratch_size(rows)}, x.options());
    cuda::layer_norm_backward<scalar_t>(
        rows,
        {by_y.data_ptr<scalar_t>(), by_x.data_ptr<scalar_t>(), by_weight.data_ptr<scalar_t>(),
         by_bias.data_ptr<scalar_t>(), scratch.data_ptr<scalar_t>()},
        StreamOf(x));
  });
}

void CudaOperations::embedding_backward(const torch::Tensor& tokens, const torch::Tensor& by_rows,
                                        const torch::Tensor& by_matrices) const {
  AT_DISPATCH_FLOATING_TYPES(by_rows.scalar_type(), "embedding_backward", [&] {
    cuda::embedding_backward({.tokens = tokens.data_ptr<std::int64_t>(),
                              .models = tokens.size(0),
                              .num_tokens = tokens.numel() / tokens.size(0),
                              .vocabulary = by_matrices.size(1),
                              .width = by_matrices.size(2)},
                             by_rows.data_ptr<scalar_t>(), by_matrices.data_ptr<scalar_t>(),
                             StreamOf(by_rows));
  });
}

torch::Tensor CudaOperations::linear_cross_entropy(const OutputLayer& layer,
                                                   const torch::Tensor& targets,
                                                   NumericalMode mode) const {
  const auto models = layer.models();
  const auto tokens = layer.tokens();
  const PieceProducts products(layer, mode);
  const auto weights = at::empty({models}, layer.features.options());
  const auto losses = at::empty_like(weights);
  const auto nll = at::empty({models, tokens}, layer.features.options().dtype(at::kDouble));
  const StreamOf stream(layer.features);
  AT_DISPATCH_FLOATING_TYPES(weights.scalar_type(), "linear_cross_entropy", [&] {
    cuda::mean_weights(targets.data_ptr<std::int64_t>(), models, tokens,
                       weights.data_ptr<scalar_t>(), stream);
    for_pieces(layer, [&](const LogitsPiece& piece) {
      const auto logits = products.logits(piece);
      const auto wanted = piece.of(targets).contiguous();
      const auto of_piece = at::empty_like(wanted, nll.options());
      cuda::cross_entropy_gradient(cross_entropy_of<scalar_t>(logits, wanted),
                                   piece.of_models(weights).template data_ptr<scalar_t>(),
                                   of_piece.template data_ptr<double>(), stream);
      piece.of(nll).copy_(of_piece);
      products.backward(logits, piece);
    });
    cuda::weighted_sums(nll.data_ptr<double>(), models, tokens, weights.data_ptr<scalar_t>(),
                        losses.data_ptr<scalar_t>(), stream);
  });
  return losses;
}

TokenScores CudaOperations::score_tokens(const OutputLayer& layer, const torch::Tensor& targets,
                                         NumericalMode mode) const {
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
      cuda::cross_entropy(cross_entropy_of<const scalar_t>(logits, wanted), nll.data_ptr<double>(),
                          correct.data_ptr<bool>(), stream);
    });
    piece.of(scores.nll).copy_(nll);
    piece.of(scores.correct).copy_(correct);
  });
  return scores;
}

}  // namespace nas::nn
