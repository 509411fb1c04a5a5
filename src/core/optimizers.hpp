#pragma once

#include <memory>

#include "core/registry.hpp"

namespace nas {

class UpdateRule;
/// Makes what changes parameters by their gradients (training/update_rule.hpp); nullptr: AdamW does with all of them.
using OptimizerRegistry = Registry<std::shared_ptr<const UpdateRule>()>;
OptimizerRegistry& optimizers();

/// Registers one from its own .cpp in src/training/optimizers/: `NAS_REGISTER_OPTIMIZER(description, function);`
#define NAS_REGISTER_OPTIMIZER(...) \
  [[maybe_unused]] static const bool nas_registered_optimizer = ::nas::optimizers().add(__VA_ARGS__)

}  // namespace nas
