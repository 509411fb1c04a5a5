#include <algorithm>
#include <utility>
#include <vector>

#include "core/seed.hpp"
#include "nn/attention.hpp"
#include "ops/device_copy.hpp"

namespace nas::nn {
namespace {

/// Blocks of keys: the query's own, the one before, the first `globals`, and `random` others, drawn
/// for each head and block once and for all: by a generator of layer, head and block, so that they
/// depend neither on the length nor on a run's seed.
/// @see Zaheer et al. (2020), arXiv:2007.14062, section 2, without the blocks that lie ahead.
class BigBird final : public Pattern {
 public:
  BigBird(const LayerContext& context, const ParameterScope& /*scope*/)
      : layer_(context.layer),
        heads_(context.shape.heads),
        block_(context.shape.sizes.integer("pattern_block")),
        globals_(context.shape.sizes.integer("globals")),
        random_(context.shape.sizes.integer("random")) {}

  torch::Tensor visible(const torch::Tensor& keys, std::int64_t first) const override {
    const auto first_block = first / block_;
    const auto blocks = (keys.size(3) - 1) / block_ + 1;
    const auto shown =
        at::zeros({heads_, blocks - first_block, blocks}, at::TensorOptions(at::kBool));
    auto rows = shown.accessor<bool, 3>();
    for (std::int64_t h = 0; h < heads_; ++h) {
      for (auto own = first_block; own < blocks; ++own) {
        for (const auto block : seen_from(h, own)) rows[h][own - first_block][block] = true;
      }
    }
    const auto places = at::arange(keys.size(3), keys.options().dtype(at::kLong));
    const auto queries = places.slice(0, first);
    return sent(shown, keys.device())
        .index_select(1, queries.div(block_, /*rounding_mode=*/"floor") - first_block)
        .index_select(2, places.div(block_, /*rounding_mode=*/"floor"))
        .logical_and(queries.unsqueeze(1).ge(places));
  }

 private:
  /// The blocks that a head shows to the queries of one of them.
  [[nodiscard]] std::vector<std::int64_t> seen_from(std::int64_t head, std::int64_t own) const {
    std::vector<std::int64_t> seen;
    for (auto block = globals_; block < own - 1; ++block) seen.push_back(block);
    RandomEngine engine(
        derive_seed(static_cast<std::uint64_t>(layer_), head, "random blocks", own));
    const auto drawn = std::min(random_, std::ssize(seen));
    for (std::int64_t n = 0; n < drawn; ++n) {
      const auto other = n + engine.below(std::ssize(seen) - n);
      std::swap(seen[static_cast<std::size_t>(n)], seen[static_cast<std::size_t>(other)]);
    }
    seen.resize(static_cast<std::size_t>(drawn));
    for (std::int64_t block = 0; block < std::min(globals_, own); ++block) seen.push_back(block);
    if (own > 0) seen.push_back(own - 1);
    seen.push_back(own);
    return seen;
  }

  std::int64_t layer_, heads_, block_, globals_, random_;
};

NAS_REGISTER_PATTERN(
    BigBird, .key = "bigbird",
    .summary =
        "blocks of keys: the query's own, the one before, the first ones, and some drawn once for "
        "each head and block (Zaheer et al. 2020, arXiv:2007.14062)");

}  // namespace
}  // namespace nas::nn
