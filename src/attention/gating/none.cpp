#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class None final : public Gating {
 public:
  std::optional<FusedGate> fused() const override { return FusedGate{}; }
};

NAS_REGISTER_GATING(None, .key = "none", .summary = "h + o: no gate");

}  // namespace
}  // namespace nas::nn
