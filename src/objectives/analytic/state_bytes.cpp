#include "search/objective.hpp"

namespace nas {
namespace {

Objective state_bytes(const Parameters& /*settings*/) {
  return {.unit = "B", .analytic = [](const Subject& subject) {
            return static_cast<double>(state_bytes(subject.architecture));
          }};
}

NAS_REGISTER_OBJECTIVE({.key = "state_bytes",
                        .summary = "bytes of inference state per token: the key/value cache of all "
                                   "layers in float32, and what the mechanism adds",
                        .settings = {},
                        .file = __FILE__},
                       state_bytes);

}  // namespace
}  // namespace nas
