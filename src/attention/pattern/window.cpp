#include "nn/attention.hpp"

namespace nas::nn {
namespace {

/// Sliding window, with the first tokens of the sequence for everybody; heads that read keys of full_groups see all.
/// @see Beltagy et al. (2020), Longformer, arXiv:2004.05150, section 3.1; Xiao et al. (2024),
/// StreamingLLM, arXiv:2309.17453.
class Window final : public Pattern {
 public:
  Window(const LayerContext& context, const ParameterScope& /*scope*/)
      : ranges_{context.shape.sizes.integer("window"), context.shape.sizes.integer("globals")} {
    const auto& shape = context.shape;
    if (shape.sizes.integer("full_groups") == 0) return;
    std::vector<std::int64_t> sees_all;
    for (std::int64_t h = 0; h < shape.heads; ++h)
      sees_all.push_back(shape.is_full(h * shape.key_heads() / shape.heads) ? 1 : 0);
    full_ = at::tensor(sees_all, at::TensorOptions(at::kLong)).to(at::kBool).view({-1, 1, 1});
  }

  torch::Tensor visible(const torch::Tensor& keys, std::int64_t first) const override {
    const auto places = at::arange(keys.size(3), keys.options().dtype(at::kLong));
    const auto distances = places.slice(0, first).unsqueeze(1) - places;
    auto seen = distances.lt(ranges_.window).logical_or(places.lt(ranges_.globals));
    if (full_.defined()) seen = seen.logical_or(full_.to(seen.device()));
    return seen.logical_and(distances.ge(0));
  }
  /// Of the heads that do not see all.
  std::optional<KeyRanges> ranges() const override { return ranges_; }

 private:
  KeyRanges ranges_;
  torch::Tensor full_{};  ///< (H, 1, 1), heads of full_groups; undefined: none
};

NAS_REGISTER_PATTERN(
    Window, .key = "window",
    .summary =
        "i - j < window, which counts the query's own token, or j < globals (Beltagy et al. 2020, "
        "arXiv:2004.05150)",
    .fused = true);

}  // namespace
}  // namespace nas::nn
