#include <cmath>
#include <cstdint>

#include "core/seed.hpp"
#include "nn/parts/hashed_keys.hpp"

namespace nas::nn {
namespace {

/// N(0, 1) by Box and Muller, the same on every computer: one generator a layer and round, so that
/// rotations depend on no run's seed.
torch::Tensor drawn_rotations(const LayerContext& context) {
  constexpr double kTurn = 6.283185307179586;
  const auto& sizes = context.shape.sizes;
  auto rotations =
      at::empty({sizes.integer("rounds"), context.shape.head_width(), sizes.integer("buckets") / 2},
                at::TensorOptions(at::kDouble));
  for (std::int64_t round = 0; round < sizes.integer("rounds"); ++round) {
    RandomEngine engine(derive_seed(static_cast<std::uint64_t>(context.layer), round, "rotations",
                                    std::int64_t{0}));
    auto numbers = rotations[round].view({-1});
    auto values = numbers.accessor<double, 1>();
    for (std::int64_t i = 0; i < numbers.size(0); ++i) {
      const double size = std::sqrt(-2.0 * std::log(1.0 - engine.uniform()));
      values[i] = size * std::cos(kTurn * engine.uniform());
    }
  }
  return rotations;
}

class Lsh final : public HashedKeys {
 public:
  Lsh(const LayerContext& context, const ParameterScope& /*scope*/)
      : HashedKeys(drawn_rotations(context), context.shape.sizes.integer("pattern_block")) {}
};

NAS_REGISTER_PATTERN(
    Lsh, .key = "lsh",
    .summary =
        "keys are unit queries; of each of several hashes, argmax [R q; -R q], the newest earlier "
        "ones that are equal (Kitaev et al. 2020, arXiv:2001.04451)");

}  // namespace
}  // namespace nas::nn
