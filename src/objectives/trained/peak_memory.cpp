#include "search/objective.hpp"

namespace nas {
namespace {

Objective peak_memory(const Parameters& /*settings*/) {
  return {.unit = "B",
          .trained =
              [](const Evaluation& evaluation) {
                return evaluation.measured.at("peak_bytes").get<double>();
              },
          .alone = true,
          .limits = {.least = 0.0}};
}

NAS_REGISTER_OBJECTIVE(
    {.key = "peak_memory",
     .summary = "peak memory of tensors during training, in bytes, as counted by "
                "the device's allocator",
     .settings = {},
     .file = __FILE__},
    peak_memory);

}  // namespace
}  // namespace nas
