#include "genotype/component.hpp"

#include <algorithm>
#include <tuple>

#include "core/error.hpp"
#include "core/registry.hpp"
#include "core/words.hpp"
#include "genotype/field_words.hpp"

namespace nas {

bool ComponentRegistry::add(Component component) {
  const auto gene = component.gene;
  const auto key = component.key;
  const auto* known = find(gene, key, component.mixer);
  const bool fresh = known == nullptr || known->mixer != component.mixer;
  if (fresh) {
    for (auto& size : component.sizes) {
      size.owner = gene;
      size.owner_options = {key};
      size.of_component = true;
    }
    declare_sizes(component.sizes);
    components_.push_back(std::move(component));
  }
  return note_registration(gene, key, fresh, {});
}

const Component* ComponentRegistry::find(std::string_view gene, std::string_view key,
                                         std::string_view mixer) const {
  const Component* found = nullptr;
  for (const auto& component : components_) {
    if (component.gene != gene || component.key != key) continue;
    if (component.mixer == mixer) return &component;
    if (found == nullptr || component.mixer.empty()) found = &component;
  }
  return found;
}

const Component& ComponentRegistry::at(std::string_view gene, std::string_view key,
                                       std::string_view mixer) const {
  if (const auto* found = find(gene, key, mixer)) return *found;
  throw InputError("unknown " + std::string(gene) + " '" + std::string(key) + "'" +
                   lead(key, keys(gene)));
}

std::vector<std::string> ComponentRegistry::keys(std::string_view gene,
                                                 std::string_view mixer) const {
  std::vector<std::string> keys;
  for (const auto* component : of(gene)) {
    if (component->mixer == mixer) keys.push_back(component->key);
  }
  return keys;
}

std::vector<const Component*> ComponentRegistry::of(std::string_view gene) const {
  std::vector<const Component*> found;
  for (const auto& component : components_) {
    if (component.gene == gene) found.push_back(&component);
  }
  std::sort(found.begin(), found.end(), [](const Component* a, const Component* b) {
    return std::tie(a->mixer, a->key) < std::tie(b->mixer, b->key);
  });
  return found;
}

void declare_sizes(const std::vector<Slot>& sizes) {
  const auto is_allowed = [](const Slot& size) {
    if (const auto* word = std::get_if<std::string>(&size.default_value)) {
      return holds(size.choices, *word);
    }
    const auto* integer = std::get_if<std::int64_t>(&size.default_value);
    const auto number =
        integer != nullptr ? static_cast<double>(*integer) : std::get<double>(size.default_value);
    return number >= size.min && number <= size.max &&
           (integer == nullptr || size.allows == nullptr || size.allows(*integer));
  };
  for (const auto& size : sizes) {
    const bool has_name =
        !size.name.empty() &&
        size.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
    note_mistake(!has_name
                     ? "size '" + size.name + "': must have a name of small letters, digits and _"
                 : size.help.empty() ? "size " + size.name + ": must have a help text"
                 : !is_allowed(size) ? "size " + size.name + ": its default is none of its values"
                                     : declare(size));
  }
}

FusedForms fused_forms(const Mechanism& mechanism) {
  const auto fused = [&](const char* gene) {
    return components().at(gene, mechanism.word(gene)).fused;
  };
  // Norms, convolutions and gates are around what the kernel of attention computes.
  const bool attention = fused("similarity") && fused("normalization") && fused("position") &&
                         fused("pattern") && fused("decay") && mechanism.integer("soft_cap") == 0 &&
                         (mechanism.word("maps") == "single" || fused("maps"));
  return {.attention = attention,
          .gating = fused("gating"),
          .temperature = attention && fused("temperature")};
}

ComponentRegistry& components() {
  static ComponentRegistry registry;
  return registry;
}

}  // namespace nas
