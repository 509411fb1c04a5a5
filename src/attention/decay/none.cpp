#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class None final : public ScoreDecay {};

NAS_REGISTER_DECAY(None, .key = "none", .summary = "nothing is forgotten", .fused = true);

}  // namespace
}  // namespace nas::nn
