#include "nn/attention.hpp"

namespace nas::nn {
namespace {

class None final : public Position {};

NAS_REGISTER_POSITION(None, .key = "none",
                      .summary = "scores know nothing of distance, but what the mask tells",
                      .fused = true);

}  // namespace
}  // namespace nas::nn
