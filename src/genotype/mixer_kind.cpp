#include "genotype/mixer_kind.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/registry.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/planned.hpp"
#include "genotype/slots.hpp"

namespace nas {

MixerCosts described_costs(const Mechanism& layer, const AttentionShape& shape) {
  const auto& component = described("mixer", layer.mixer);
  return {component.parameters(shape), component.flops(shape), component.state_bytes(shape)};
}

std::string key_of_genes(const Mechanism& layer) {
  std::string key;
  for (const auto* slot : layer_slots()) {
    if (has_gene(layer.mixer, *slot)) key += text(*slot, layer) + "|";
  }
  return key;
}

double no_values(const Architecture& /*architecture*/, const Mechanism& /*layer*/) { return 0.0; }

bool MixerKinds::add(MixerKind kind) {
  const auto key = kind.key;
  const bool fresh = kinds_.try_emplace(key, std::move(kind)).second;
  return note_registration("mixer kind", key, fresh, {});
}

const MixerKind& MixerKinds::at(std::string_view key) const {
  const auto found = kinds_.find(key);
  if (found != kinds_.end()) return found->second;
  throw InputError("unknown mixer '" + std::string(key) + "', known: " + join(keys()) +
                   did_you_mean(key, keys()));
}

std::vector<std::string> MixerKinds::keys() const {
  std::vector<std::string> keys;
  for (const auto& key : slot("mixer").words) {
    if (contains(key)) keys.push_back(key);
  }
  for (const auto& [key, kind] : kinds_) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

MixerKinds& mixer_kinds() {
  static MixerKinds kinds;
  return kinds;
}

}  // namespace nas
