#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class Full final : public Pattern {
 public:
  torch::Tensor visible(const torch::Tensor& keys, std::int64_t first) const override {
    const auto tokens = keys.size(3);
    return at::ones({tokens - first, tokens}, keys.options().dtype(at::kBool)).tril(first);
  }
  std::optional<KeyRanges> ranges() const override { return KeyRanges{}; }
};

NAS_REGISTER_PATTERN(Full, .key = "full", .summary = "j <= i: all keys so far", .fused = true);

}  // namespace
}  // namespace nas::nn
