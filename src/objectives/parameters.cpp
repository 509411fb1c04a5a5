#include "search/objective.hpp"

namespace nas {
namespace {

Objective parameters() {
  return {.unit = "1",
          .value = [](const Evaluation& evaluation) { return evaluation.values.at("parameters"); },
          .penalty = 1e18};
}

NAS_REGISTER_OBJECTIVE({.key = "parameters",
                        .summary = "number of trained parameters, embedding included",
                        .settings = {},
                        .file = __FILE__},
                       parameters);

}  // namespace
}  // namespace nas
