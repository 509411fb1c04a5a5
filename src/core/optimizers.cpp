#include "core/optimizers.hpp"

namespace nas {

OptimizerRegistry& optimizers() {
  static OptimizerRegistry registry("optimizer");
  return registry;
}

}  // namespace nas
