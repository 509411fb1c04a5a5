#include "genotype/planned.hpp"

#include <string>

#include "core/error.hpp"

namespace nas {

const Component& described(std::string_view gene, std::string_view key, std::string_view mixer) {
  if (const auto* component = components().find(gene, key, mixer)) return *component;
  throw InputError(std::string(gene) + " = " + std::string(key) + ": no module computes it");
}

}  // namespace nas
