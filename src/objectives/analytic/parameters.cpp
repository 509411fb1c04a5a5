#include "genotype/costs.hpp"
#include "search/objective.hpp"

namespace nas {
namespace {

Objective parameters(const Parameters& /*settings*/) {
  return {.unit = "1", .analytic = [](const Subject& subject) {
            return static_cast<double>(num_parameters(subject.architecture));
          }};
}

NAS_REGISTER_OBJECTIVE({.key = "parameters",
                        .summary = "number of trained parameters, embedding included",
                        .settings = {},
                        .file = __FILE__},
                       parameters);

}  // namespace
}  // namespace nas
