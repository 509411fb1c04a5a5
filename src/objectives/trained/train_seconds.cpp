#include "search/objective.hpp"

namespace nas {
namespace {

Objective train_seconds(const Parameters& /*settings*/) {
  return {.unit = "s",
          .trained =
              [](const Evaluation& evaluation) {
                return evaluation.measured.at("train_seconds").get<double>();
              },
          .alone = true,
          .limits = {.least = 0.0}};
}

NAS_REGISTER_OBJECTIVE({.key = "train_seconds",
                        .summary = "seconds of training and validation; measured, so that a search "
                                   "on it cannot be repeated exactly",
                        .settings = {},
                        .file = __FILE__},
                       train_seconds);

}  // namespace
}  // namespace nas
