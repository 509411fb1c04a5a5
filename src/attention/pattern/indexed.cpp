#include <algorithm>

#include "nn/attention.hpp"
#include "ops/product.hpp"

namespace nas::nn {
namespace {

/// The query's own block of keys, up to its own, and of the finished ones before it those `chosen` with
/// the largest
///
///   sum over heads h of max(q_h . mean of the block's keys k_h, 0)
///
/// All heads see the same blocks. No gradient flows through the choice.
/// @see the indexer of transformers' qwen4_exp (QSA), with heads of queries and keys of its own, and the
/// newest tokens in place of the own block.
class Indexed final : public Pattern {
 public:
  Indexed(const LayerContext& context, const ParameterScope& /*scope*/)
      : block_(context.shape.sizes.integer("pattern_block")),
        chosen_(context.shape.sizes.integer("chosen")) {}

  bool reads_queries() const override { return true; }

  /// Of queries that choose nothing.
  torch::Tensor visible(const torch::Tensor& keys, std::int64_t first) const override {
    const auto places = at::arange(keys.size(3), keys.options().dtype(at::kLong));
    const auto blocks = places.div(block_, /*rounding_mode=*/"floor");
    const auto queries = places.slice(0, first).unsqueeze(1);
    return blocks.slice(0, first).unsqueeze(1).eq(blocks).logical_and(queries.ge(places));
  }

  torch::Tensor chosen(const torch::Tensor& queries, const torch::Tensor& keys) const override {
    const at::NoGradGuard no_grad;
    return model_by_model(
        [this](const torch::Tensor& q, const torch::Tensor& k) { return seen_by(q, k); }, queries,
        keys);
  }

 private:
  [[nodiscard]] torch::Tensor seen_by(const torch::Tensor& q, const torch::Tensor& k) const {
    const auto tokens = k.size(3), first = tokens - q.size(3), finished = tokens / block_;
    auto shown = visible(k, first).expand({q.size(0), q.size(1), q.size(2), -1, -1});
    const auto most = std::min(chosen_, finished);
    if (most == 0) return shown;
    const auto means = k.narrow(3, 0, finished * block_)
                           .unflatten(3, {finished, block_})
                           .mean(4)
                           .repeat_interleave(q.size(2) / k.size(2), 2);
    const auto blocks = at::arange(finished, k.options().dtype(at::kLong));
    const auto own = at::arange(first, tokens, blocks.options())
                         .div(block_, /*rounding_mode=*/"floor")
                         .unsqueeze(1);
    const auto earlier = blocks.lt(own);  // (n, blocks)
    const auto scores = q.matmul(means.transpose(-2, -1)).relu().sum(2);
    const auto taken = at::zeros_like(scores, scores.options().dtype(at::kBool))
                           .scatter_(-1, largest_places(hide(scores, earlier), most), true)
                           .logical_and(earlier)
                           .repeat_interleave(block_, -1);
    return shown.logical_or(
        at::constant_pad_nd(taken, {0, tokens - finished * block_}).unsqueeze(2));
  }

  /// Of equal ones the first.
  static torch::Tensor largest_places(const torch::Tensor& scores, std::int64_t count) {
    return scores.argsort(/*stable=*/true, -1, /*descending=*/true).narrow(-1, 0, count);
  }

  std::int64_t block_, chosen_;
};

NAS_REGISTER_PATTERN(
    Indexed, .key = "indexed",
    .summary =
        "blocks of keys: the query's own, and of those before it the chosen ones whose mean "
        "keys fit best, sum_h max(q_h.k_h, 0) (after the QSA indexer of Qwen4, 2026)",
    .flops = [](const AttentionShape& shape) {
      const auto block = shape.sizes.integer("pattern_block");
      const auto blocks = static_cast<double>(shape.context / block);
      return static_cast<double>(shape.context) *
             (2.0 * blocks * static_cast<double>(shape.inner() + shape.heads) +
              static_cast<double>(shape.key_width()));
    });

}  // namespace
}  // namespace nas::nn
