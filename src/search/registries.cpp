#include "search/algorithm.hpp"
#include "search/objective.hpp"
#include "search/problem.hpp"

namespace nas {

AlgorithmRegistry& algorithms() {
  static AlgorithmRegistry registry("algorithm");
  return registry;
}

ObjectiveRegistry& objectives() {
  static ObjectiveRegistry registry("objective");
  return registry;
}

ProblemRegistry& problems() {
  static ProblemRegistry registry("problem");
  return registry;
}

Setting generations_setting(std::int64_t default_value) {
  return {.name = "generations",
          .default_value = default_value,
          .help = "generations, the initial population included",
          .min = 1,
          .max = 1e9};
}

}  // namespace nas
