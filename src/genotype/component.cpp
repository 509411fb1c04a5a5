#include "genotype/component.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/error.hpp"

namespace nas {

bool ComponentRegistry::add(Component component) {
  if (contains(component.gene, component.key)) {
    std::fprintf(stderr, "%s '%s' is registered twice\n", component.gene.c_str(),
                 component.key.c_str());
    std::abort();
  }
  components_.push_back(std::move(component));
  return true;
}

bool ComponentRegistry::contains(std::string_view gene, std::string_view key) const {
  return std::any_of(components_.begin(), components_.end(),
                     [&](const Component& c) { return c.gene == gene && c.key == key; });
}

const Component& ComponentRegistry::at(std::string_view gene, std::string_view key) const {
  for (const auto& component : components_) {
    if (component.gene == gene && component.key == key) return component;
  }
  const std::string guess = nearest(key, keys(gene));
  throw InputError("unknown " + std::string(gene) + " '" + std::string(key) + "', known: " +
                   join(keys(gene)) + (guess.empty() ? "" : "; did you mean " + guess + "?"));
}

std::vector<std::string> ComponentRegistry::keys(std::string_view gene) const {
  std::vector<std::string> keys;
  for (const auto& component : components_) {
    if (component.gene == gene) keys.push_back(component.key);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

ComponentRegistry& components() {
  static ComponentRegistry registry;
  return registry;
}

}  // namespace nas
