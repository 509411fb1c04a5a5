#include "nn/parts/state_options.hpp"
#include "ops/product.hpp"

namespace nas::nn {
namespace {

/// phi(u) = elu(u) + 1, element by element: u + 1 above 0, else e^u.
/// @see Katharopoulos et al. (2020), arXiv:2006.16236, equation 7.
class Elu1 final : public FeatureMap {
 public:
  torch::Tensor of_queries(const torch::Tensor& q) const override {
    return model_by_model([](const torch::Tensor& part) { return at::elu(part) + 1.0; }, q);
  }
};

NAS_REGISTER_FEATURE(
    Elu1, .key = "elu1",
    .summary = "phi(u) = elu(u) + 1 (Katharopoulos et al. 2020, arXiv:2006.16236)",
    .flops = [](const AttentionShape& shape) { return shape.at_each_token(4 * shape.width); });

}  // namespace
}  // namespace nas::nn
