#include "genotype/component.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/registry.hpp"

namespace nas {

bool ComponentRegistry::add(Component component) {
  const auto gene = component.gene;
  const auto key = component.key;
  const bool fresh = !contains(gene, key);
  if (fresh) components_.push_back(std::move(component));
  return note_registration(gene, key, fresh, {});
}

bool ComponentRegistry::contains(std::string_view gene, std::string_view key) const {
  return std::any_of(components_.begin(), components_.end(),
                     [&](const Component& c) { return c.gene == gene && c.key == key; });
}

const Component& ComponentRegistry::at(std::string_view gene, std::string_view key) const {
  for (const auto& component : components_) {
    if (component.gene == gene && component.key == key) return component;
  }
  throw InputError("unknown " + std::string(gene) + " '" + std::string(key) +
                   "', known: " + join(keys(gene)) + did_you_mean(key, keys(gene)));
}

std::vector<std::string> ComponentRegistry::keys(std::string_view gene,
                                                 std::string_view mixer) const {
  std::vector<std::string> keys;
  for (const auto& component : components_) {
    if (component.gene == gene && component.mixer == mixer) keys.push_back(component.key);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

ComponentRegistry& components() {
  static ComponentRegistry registry;
  return registry;
}

}  // namespace nas
