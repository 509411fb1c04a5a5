#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class Full final : public Pattern {
 public:
  torch::Tensor visible(std::int64_t tokens, torch::Device device) const override {
    return at::ones({tokens, tokens}, at::TensorOptions(at::kBool).device(device)).tril();
  }
  std::optional<KeyRanges> ranges() const override { return KeyRanges{}; }
};

NAS_REGISTER_PATTERN(Full, .key = "full", .summary = "j <= i: all keys so far", .fused = true);

}  // namespace
}  // namespace nas::nn
