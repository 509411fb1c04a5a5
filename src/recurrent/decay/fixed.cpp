#include <cmath>
#include <vector>

#include "nn/parts/state_options.hpp"
#include "ops/device_copy.hpp"

namespace nas::nn {
namespace {

/// alpha_h = 1 - 2^(-5-h).
/// @see Sun et al. (2023), RetNet, arXiv:2307.08621, section 3.1.
class Fixed final : public StateDecay {
 public:
  Fixed(const LayerContext& context, const ParameterScope& /*scope*/) {
    std::vector<double> values;
    for (std::int64_t h = 0; h < context.shape.heads; ++h) values.push_back(std::log1p(-share(h)));
    logarithms_ = at::tensor(values, at::TensorOptions(at::kDouble)).view({1, 1, -1, 1, 1});
  }

  torch::Tensor logarithms(const torch::Tensor& x) const override {
    if (!there_.defined() || there_.device() != x.device() ||
        there_.scalar_type() != x.scalar_type()) {
      there_ = sent(logarithms_.to(x.scalar_type()), x.device());
    }
    return there_.expand({x.size(0), x.size(1), there_.size(2), x.size(2), 1});
  }

  torch::Tensor naive(const HeadToken& token) const override {
    return at::full({1}, 1.0 - share(token.head), token.x.options());
  }

 private:
  static double share(std::int64_t head) { return std::pow(2.0, -5.0 - static_cast<double>(head)); }

  torch::Tensor logarithms_;     // (1, 1, H, 1, 1), float64 on the CPU
  mutable torch::Tensor there_;  // the same where and as the latest input was
};

NAS_REGISTER_STATE_DECAY(Fixed, .key = "fixed",
                         .summary = "alpha_h = 1 - 2^(-5-h) (Sun et al. 2023, arXiv:2307.08621)");

}  // namespace
}  // namespace nas::nn
