#include "nn/attention.hpp"
#include "ops/product.hpp"

namespace nas::nn {
namespace {

/// Contextual positions: a key's place is how many gates g = sigmoid(s) open from it to the query,
///
///   p_ij = min(sum of g_it over visible t = j .. i, M - 1)
///   s_ij + (1 - a) q_i.e[floor p] + a q_i.e[ceil p],  a = p - floor p
///
/// e (M, d) of cope_positions = M, shared by the heads.
/// @see Golovneva et al. (2024), arXiv:2405.18719, section 4.
class Cope final : public Position {
 public:
  Cope(const LayerContext& context, const ParameterScope& scope)
      : table_(
            scope.add("cope.weight",
                      {context.shape.sizes.integer("cope_positions"), context.shape.head_width()},
                      Start::constant(0.0), Decay::no)) {}

  bool reads_scores() const override { return true; }

  torch::Tensor added(const torch::Tensor& scores, const torch::Tensor& q,
                      const torch::Tensor& visible) const override {
    const auto last = static_cast<double>(table_.size(1) - 1);
    auto shown = visible;
    while (shown.dim() < 5) shown = shown.unsqueeze(0);
    return model_by_model(
        [last](const torch::Tensor& part, const torch::Tensor& queries, const torch::Tensor& seen,
               const torch::Tensor& table) {
          const auto gates = part.sigmoid().masked_fill(seen.logical_not(), 0.0);
          const auto places = gates.flip(-1).cumsum(-1).flip(-1).clamp_max(last);
          const auto before = places.detach().floor();
          const auto vectors = table.unsqueeze(1).unsqueeze(1).transpose(-2, -1);
          const auto products = queries.matmul(vectors);  // (M, B, H, n, positions)
          const auto at = [&](const torch::Tensor& place) {
            return products.gather(-1, place.to(at::kLong));
          };
          const auto near = at(before), far = at(places.detach().ceil());
          return near + (places - before) * (far - near);
        },
        scores, q, shown.expand({scores.size(0), -1, -1, -1, -1}), table_);
  }

 private:
  torch::Tensor table_;  // (M, positions, d)
};

NAS_REGISTER_POSITION(
    Cope, .key = "cope",
    .summary =
        "s_ij + q_i.e[p_ij], p_ij the gates sigmoid(s) that are open from j to i, up to "
        "cope_positions (Golovneva et al. 2024, arXiv:2405.18719)",
    .parameters =
        [](const AttentionShape& shape) {
          return shape.sizes.integer("cope_positions") * shape.head_width();
        },
    .flops =
        [](const AttentionShape& shape) {
          return shape.at_each_token(2 * shape.inner() * shape.sizes.integer("cope_positions")) +
                 5.0 * shape.pairs() * static_cast<double>(shape.heads);
        });

}  // namespace
}  // namespace nas::nn
