#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class None final : public Gating {};

NAS_REGISTER_GATING(None, .key = "none", .summary = "h + o: no gate", .placeless = true);

}  // namespace
}  // namespace nas::nn
