#include "nn/attention.hpp"

namespace nas::nn {
namespace {

/// The newest keys, and of those before one in `stride`.
/// @see Child et al. (2019), Sparse Transformer, arXiv:1904.10509, section 4.3, both of its sets in
/// every head.
class Strided final : public Pattern {
 public:
  Strided(const LayerContext& context, const ParameterScope& /*scope*/)
      : stride_(context.shape.sizes.integer("stride")) {}

  torch::Tensor visible(const torch::Tensor& keys, std::int64_t first) const override {
    const auto places = at::arange(keys.size(3), keys.options().dtype(at::kLong));
    const auto distances = places.slice(0, first).unsqueeze(1) - places;
    return distances.lt(stride_)
        .logical_or(distances.remainder(stride_).eq(0))
        .logical_and(distances.ge(0));
  }

 private:
  std::int64_t stride_;
};

NAS_REGISTER_PATTERN(
    Strided, .key = "strided",
    .summary =
        "i - j < stride, or i - j a multiple of stride (Child et al. 2019, arXiv:1904.10509)");

}  // namespace
}  // namespace nas::nn
