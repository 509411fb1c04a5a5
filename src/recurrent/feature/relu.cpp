#include "nn/parts/state_options.hpp"
#include "ops/product.hpp"

namespace nas::nn {
namespace {

/// phi(u) = max(u, 0), element by element. A query of zeros reads 0.
class Relu final : public FeatureMap {
 public:
  torch::Tensor of_queries(const torch::Tensor& q) const override {
    return model_by_model([](const torch::Tensor& part) { return part.relu(); }, q);
  }
};

NAS_REGISTER_FEATURE(Relu, .key = "relu", .summary = "phi(u) = max(u, 0)");

}  // namespace
}  // namespace nas::nn
