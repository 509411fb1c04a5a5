#include "nn/norm.hpp"

namespace nas::nn {

NormRegistry& norms() {
  static NormRegistry registry("norm");
  return registry;
}

}  // namespace nas::nn
