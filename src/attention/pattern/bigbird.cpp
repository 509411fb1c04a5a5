#include <algorithm>
#include <utility>
#include <vector>

#include "core/seed.hpp"
#include "nn/parts/block_pattern.hpp"

namespace nas::nn {
namespace {

/// Blocks of keys: the query's own, the one before, the first `globals`, and `random` others, drawn
/// for each head and block once and for all: by a generator of layer, head and block, so that they
/// depend neither on the length nor on a run's seed.
/// @see Zaheer et al. (2020), arXiv:2007.14062, section 2, without the blocks that lie ahead.
class BigBird final : public BlockPattern {
 public:
  BigBird(const LayerContext& context, const ParameterScope& /*scope*/)
      : BlockPattern(context.shape),
        layer_(context.layer),
        random_(context.shape.sizes.integer("random")) {}

 private:
  [[nodiscard]] std::vector<std::int64_t> drawn(std::int64_t head,
                                                std::int64_t own) const override {
    std::vector<std::int64_t> drawn;
    for (auto block = globals(); block < own - 1; ++block) drawn.push_back(block);
    RandomEngine engine(
        derive_seed(static_cast<std::uint64_t>(layer_), head, "random blocks", own));
    const auto count = std::min(random_, std::ssize(drawn));
    for (std::int64_t n = 0; n < count; ++n) {
      const auto other = n + engine.below(std::ssize(drawn) - n);
      std::swap(drawn[static_cast<std::size_t>(n)], drawn[static_cast<std::size_t>(other)]);
    }
    drawn.resize(static_cast<std::size_t>(count));
    return drawn;
  }

  std::int64_t layer_, random_;
};

NAS_REGISTER_PATTERN(
    BigBird, .key = "bigbird",
    .summary =
        "blocks of keys: the query's own, the one before, the first ones, and some drawn once for "
        "each head and block (Zaheer et al. 2020, arXiv:2007.14062)");

}  // namespace
}  // namespace nas::nn
