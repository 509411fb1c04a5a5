#include <algorithm>
#include <tuple>
#include <vector>

#include "nn/attention.hpp"
#include "ops/product.hpp"

namespace nas::nn {
namespace {

constexpr std::int64_t kChunk = 64;  // keys whose products of maps are formed together

/// Positions by accumulated Householder maps: q_i sees key j as H_i ... H_{j+1} k_j,
///
///   H_t = I - beta_t w_t w_t',  w = W_w x of unit length,  beta = 2 sigmoid(W_b x), of each head
///
/// By chunks of keys, the newest first: with A = (I + diag(beta) strictly_lower(W W'))^-1 diag(beta) of a
/// chunk and L = q W' up to each query's own token, scores are q K' - L A strictly_lower(W K'), and
/// queries q - L A W to the chunk before.
/// @see Yang et al. (2025), PaTH attention, arXiv:2505.16381, section 3.
class Path final : public Position {
 public:
  Path(const LayerContext& context, const ParameterScope& scope)
      : mode_(unrounded(scope.mode())),
        heads_(context.shape.heads),
        directions_(scope.add("path_w.weight", {context.shape.inner(), context.shape.width},
                              Start::normal(), Decay::yes)),
        gates_(scope.add("path_beta.weight", {heads_, context.shape.width}, Start::constant(0.0),
                         Decay::yes)) {}

  bool changes_keys() const override { return true; }

  torch::Tensor passed(const torch::Tensor& keys, const torch::Tensor& x) const override {
    return model_by_model(
        [this](const torch::Tensor& k, const torch::Tensor& directions,
               const torch::Tensor& gates) {
          const auto [w, beta] = maps_of(directions, gates);
          return k - k.matmul(w.transpose(-2, -1)) * (beta * w);
        },
        keys, linear(x, directions_, {}, mode_), linear(x, gates_, {}, mode_));
  }

  torch::Tensor products(const torch::Tensor& q, const torch::Tensor& k,
                         const torch::Tensor& x) const override {
    return model_by_model(
        [this](const torch::Tensor& queries, const torch::Tensor& keys,
               const torch::Tensor& directions, const torch::Tensor& gates) {
          const auto [w, beta] = maps_of(directions, gates);
          return seen_products(queries, keys, w, beta);
        },
        q, k, linear(x, directions_, {}, mode_), linear(x, gates_, {}, mode_));
  }

 private:
  /// w (M, B, H, T, d) and beta (M, B, H, T, 1).
  [[nodiscard]] std::tuple<torch::Tensor, torch::Tensor> maps_of(const torch::Tensor& directions,
                                                                 const torch::Tensor& gates) const {
    constexpr double kEpsilon = 1e-6;
    const auto w =
        directions.view({directions.size(0), directions.size(1), directions.size(2), heads_, -1})
            .transpose(2, 3);
    const auto squares = w.square().sum(-1, /*keepdim=*/true) + kEpsilon;
    return {w * squares.rsqrt(), gates.transpose(2, 3).unsqueeze(-1).sigmoid() * 2.0};
  }

  static torch::Tensor seen_products(const torch::Tensor& q, const torch::Tensor& k,
                                     const torch::Tensor& w, const torch::Tensor& beta) {
    const auto tokens = q.size(3), width = q.size(4);
    auto later = q.narrow(3, 0, 0);  // queries behind the chunk, through the maps behind it
    std::vector<torch::Tensor> columns;
    for (auto first = (tokens - 1) / kChunk * kChunk; first >= 0; first -= kChunk) {
      const auto size = std::min(kChunk, tokens - first);
      const auto of_chunk = [&](const torch::Tensor& all) { return all.narrow(3, first, size); };
      const auto keys = of_chunk(k).transpose(-2, -1), maps = of_chunk(w), scales = of_chunk(beta);
      const auto queries = at::cat({of_chunk(q), later}, 3);
      const auto along = queries.matmul(maps.transpose(-2, -1)).tril();
      const auto solved =
          at::linalg_solve_triangular(scales * maps.matmul(maps.transpose(-2, -1)).tril(-1),
                                      scales * at::cat({maps, maps.matmul(keys).tril(-1)}, -1),
                                      /*upper=*/false, /*left=*/true, /*unitriangular=*/true);
      columns.push_back(at::constant_pad_nd(
          queries.matmul(keys) - along.matmul(solved.narrow(-1, width, size)), {0, 0, first, 0}));
      later = queries - along.matmul(solved.narrow(-1, 0, width));
    }
    std::reverse(columns.begin(), columns.end());
    return at::cat(columns, -1);
  }

  NumericalMode mode_;
  std::int64_t heads_;
  torch::Tensor directions_, gates_;  // (M, H d, D), (M, H, D)
};

NAS_REGISTER_POSITION(
    Path, .key = "path",
    .summary =
        "q_i.(H_i ... H_{j+1} k_j), H_t = I - beta_t w_t w_t' of each head (Yang et al. 2025, "
        "arXiv:2505.16381)",
    .parameters =
        [](const AttentionShape& shape) { return shape.width * (shape.inner() + shape.heads); },
    .flops =
        [](const AttentionShape& shape) {
          return 4.0 * shape.pairs() * static_cast<double>(shape.inner()) +
                 shape.at_each_token(2 * shape.width * (shape.inner() + shape.heads));
        });

}  // namespace
}  // namespace nas::nn
