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

}  // namespace nas
