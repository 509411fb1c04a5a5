#include "nn/attention.hpp"

namespace nas::nn {
namespace {

/// Sliding window, with the first tokens of the sequence for everybody.
/// @see Beltagy et al. (2020), Longformer, arXiv:2004.05150, section 3.1; Xiao et al. (2024),
/// StreamingLLM, arXiv:2309.17453.
class Window final : public Pattern {
 public:
  Window(const LayerContext& context, const ParameterScope& /*scope*/)
      : ranges_{context.shape.sizes.integer("window"), context.shape.sizes.integer("globals")} {}

  torch::Tensor visible(const torch::Tensor& keys, std::int64_t first) const override {
    const auto places = at::arange(keys.size(3), keys.options().dtype(at::kLong));
    const auto distances = places.slice(0, first).unsqueeze(1) - places;
    return distances.lt(ranges_.window)
        .logical_or(places.lt(ranges_.globals))
        .logical_and(distances.ge(0));
  }
  std::optional<KeyRanges> ranges() const override { return ranges_; }

 private:
  KeyRanges ranges_;
};

NAS_REGISTER_PATTERN(
    Window, .key = "window",
    .summary =
        "i - j < window, which counts the query's own token, or j < globals (Beltagy et al. 2020, "
        "arXiv:2004.05150)",
    .fused = true);

}  // namespace
}  // namespace nas::nn
