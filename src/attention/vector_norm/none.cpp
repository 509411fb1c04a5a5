#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class None final : public VectorNorm {
 public:
  torch::Tensor normalised(const torch::Tensor& vectors) const override { return vectors; }
};

NAS_REGISTER_VECTOR_NORM(None, .key = "none", .summary = "heads' vectors stay as they are");

}  // namespace
}  // namespace nas::nn
