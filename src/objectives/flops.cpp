#include "search/objective.hpp"

namespace nas {
namespace {

Objective flops() {
  return {.unit = "FLOP",
          .value = [](const Evaluation& evaluation) { return evaluation.values.at("flops"); },
          .penalty = 1e18};
}

NAS_REGISTER_OBJECTIVE({.key = "flops",
                        .summary = "floating-point operations of a forward pass over one sequence",
                        .settings = {},
                        .file = __FILE__},
                       flops);

}  // namespace
}  // namespace nas
