#include <cmath>

#include "nn/parts/state_options.hpp"
#include "ops/product.hpp"

namespace nas::nn {
namespace {

/// phi(u) = [1, u d_k^(-1/4), vec(u u') / sqrt(2 d_k)], so that phi(q).phi(k) = 1 + s + s^2 / 2, s =
/// q.k / sqrt(d_k): the series of e^s, positive for any s.
/// @see Arora et al. (2024), Based, arXiv:2402.18668, section 4.1.
class Taylor2 final : public FeatureMap {
 public:
  Taylor2(const LayerContext& context, const ParameterScope& /*scope*/)
      : width_(static_cast<double>(context.shape.head_width())) {}

  torch::Tensor of_queries(const torch::Tensor& q) const override {
    return model_by_model(
        [this](const torch::Tensor& part) {
          const auto squares = (part.unsqueeze(-1) * part.unsqueeze(-2)).flatten(-2);
          return at::cat({at::ones_like(part.narrow(-1, 0, 1)), part * std::pow(width_, -0.25),
                          squares / std::sqrt(2.0 * width_)},
                         -1);
        },
        q);
  }

 private:
  double width_;  // d_k
};

NAS_REGISTER_FEATURE(
    Taylor2, .key = "taylor2",
    .summary =
        "phi(q).phi(k) = 1 + s + s^2 / 2, s = q.k / sqrt(d_k), f = 1 + d_k + d_k^2 (Arora et "
        "al. 2024, arXiv:2402.18668)",
    .flops =
        [](const AttentionShape& shape) {
          return shape.at_each_token(2 * shape.width * (2 * shape.head_width() + 1));
        },
    .features =
        [](const AttentionShape& shape) {
          const auto width = shape.head_width();
          return 1 + width + width * width;
        });

}  // namespace
}  // namespace nas::nn
