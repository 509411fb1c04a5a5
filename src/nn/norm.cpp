#include "nn/norm.hpp"

namespace nas::nn {

NormRegistry& norms() {
  static NormRegistry registry("norm");
  return registry;
}

std::unique_ptr<Norm> make_norm(const Architecture& architecture, const ParameterScope& scope) {
  const auto& genes = architecture.genes;
  return norms().at(genes.word("norm")).make({architecture.width, genes.real("norm_eps")}, scope);
}

}  // namespace nas::nn
