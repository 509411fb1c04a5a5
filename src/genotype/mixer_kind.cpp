#include "genotype/mixer_kind.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/registry.hpp"
#include "core/words.hpp"
#include "genotype/field_words.hpp"

namespace nas {

bool MixerKinds::add(MixerKind kind) {
  const auto key = kind.key;
  const auto [position, fresh] = kinds_.try_emplace(key, std::move(kind));
  if (fresh) {
    for (const auto& size : position->second.sizes) {
      if (is_text(size) && position->second.read_text != nullptr) {
        note_mistake(declare(size));
      } else {
        declare_sizes({size});
      }
    }
  }
  return note_registration("mixer kind", key, fresh, {});
}

const MixerKind& MixerKinds::at(std::string_view key) const {
  const auto found = kinds_.find(key);
  if (found != kinds_.end()) return found->second;
  throw InputError("unknown mixer '" + std::string(key) + "'" + lead(key, keys()));
}

std::vector<std::string> MixerKinds::keys() const {
  std::vector<std::string> keys;
  for (const auto& key : slot("mixer").choices) {
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

bool is_text(const Slot& slot) { return slot.is_word() && slot.choices.empty(); }

std::string read_text(const Slot& slot, std::string_view text) {
  for (const auto& key : mixer_kinds().keys()) {
    const auto& kind = mixer_kinds().at(key);
    if (kind.read_text != nullptr && has_gene(key, slot)) return kind.read_text(slot, text);
  }
  throw InputError(slot.name + " = " + std::string(text) + ": no mixer reads it");
}

std::vector<Mechanism> parts_of(const Mechanism& layer) {
  auto parts = mixer_kinds().at(layer.word("mixer")).parts(layer, {});
  return parts.empty() ? std::vector{layer} : parts;
}

const std::vector<std::string>* options_of(std::string_view mixer, const Slot& slot) {
  static const std::vector<std::string> kAll;
  if (slot.name == "mixer" || slot.name == "ffn" || slot.name == "ratio") return &kAll;
  const auto& kind = mixer_kinds().at(mixer);
  for (const auto& [gene, options] : kind.genes) {
    if (gene == slot.name) return &options;
  }
  const bool own = std::any_of(kind.sizes.begin(), kind.sizes.end(),
                               [&](const Slot& size) { return size.name == slot.name; });
  const auto has = [&, owner = find_slot(slot.owner)](const std::string& option) {
    return owner != nullptr && has_option(mixer, *owner, option);
  };
  const bool of_option =
      slot.of_component && std::any_of(slot.owner_options.begin(), slot.owner_options.end(), has);
  return own || of_option ? &kAll : nullptr;
}

bool has_gene(std::string_view mixer, const Slot& slot) {
  return options_of(mixer, slot) != nullptr;
}

bool has_option(std::string_view mixer, const Slot& slot, std::string_view option) {
  const auto* options = options_of(mixer, slot);
  if (options == nullptr) return false;
  const auto* component = components().find(slot.name, option, mixer);
  if (component != nullptr && !component->mixer.empty()) return component->mixer == mixer;
  return options->empty() || holds(*options, option);
}

}  // namespace nas
