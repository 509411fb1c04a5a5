#pragma once

#include <memory>
#include <string>

#include "core/registry.hpp"
#include "store/evaluation.hpp"

namespace nas {

/// A scalar to minimise. It owns its sign and its unit.
struct Objective {
  std::string unit;  ///< "1", "nats", "FLOP", "s"
  std::function<double(const Evaluation&)>
      value;             ///< in minimisation form; finite for usable evaluations
  double penalty = 1e9;  ///< finite, worse than any real value: what a failure gets
};

using ObjectiveRegistry = Registry<Objective()>;
ObjectiveRegistry& objectives();

/// Registers an objective from its own .cpp in src/objectives/:
/// `NAS_REGISTER_OBJECTIVE(description, function);`
#define NAS_REGISTER_OBJECTIVE(...) \
  [[maybe_unused]] static const bool nas_registered_objective = ::nas::objectives().add(__VA_ARGS__)

}  // namespace nas
