#include "nn/parts/state_options.hpp"

namespace nas::nn {
namespace {

/// S_t = diag(alpha_t) S_{t-1} + k_t v_t'
/// @see Katharopoulos et al. (2020), arXiv:2006.16236, equation 18.
class Add final : public StateUpdate {
 public:
  void gate(const torch::Tensor& /*x*/, Recurrence& /*tokens*/) const override {}
  torch::Tensor naive(const torch::Tensor& decayed, const HeadToken& token) const override {
    return decayed + token.key.outer(token.value);
  }
};

NAS_REGISTER_STATE_UPDATE(
    Add, .key = "add",
    .summary = "S <- alpha S + k v' (Katharopoulos et al. 2020, arXiv:2006.16236)",
    .voids = {"neg_eigen"});

}  // namespace
}  // namespace nas::nn
