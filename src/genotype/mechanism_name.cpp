#include "genotype/mechanism_name.hpp"

#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/words.hpp"
#include "genotype/component.hpp"
#include "genotype/slots.hpp"

namespace nas {

namespace {

template <class TextOf>
std::string joined(TextOf text_of) {
  std::string name;
  for (const auto* slot : paper_slots()) name += (name.empty() ? "" : "|") + text_of(*slot);
  return name;
}

}  // namespace

std::string to_string(const Mechanism& mechanism) {
  return joined([&](const Slot& slot) { return text(slot, mechanism); });
}

std::string label(const Mechanism& mechanism, Semantics semantics) {
  return joined([&](const Slot& slot) {
    const auto chosen = text(slot, mechanism);
    return slot.is_component() ? component_label(semantics, slot.name, chosen) : chosen;
  });
}

Mechanism parse_mechanism(std::string_view text, Semantics semantics) {
  const auto where = "mechanism '" + std::string(text) + "': ";
  const auto fields = split(text, '|');
  if (fields.size() != paper_slots().size()) {
    throw InputError(where + std::to_string(fields.size()) + " fields, must be " +
                     std::to_string(paper_slots().size()) + ": " +
                     joined([](const Slot& slot) { return slot.name; }));
  }
  auto mechanism = vanilla_mechanism(semantics);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto& slot = *paper_slots()[i];
    try {
      // A name of six fields has no third word.
      if (slot.is_flag() && fields[i] != slot.choices[0] && fields[i] != slot.choices[1]) {
        throw InputError(slot.name + " = " + std::string(fields[i]) + ", must be one of " +
                         slot.choices[0] + ", " + slot.choices[1]);
      }
      choose(slot, fields[i], semantics, mechanism);
    } catch (const InputError& error) {
      throw InputError(where + error.what());
    }
  }
  return mechanism;
}

Mechanism canonical(Mechanism mechanism, Semantics semantics) {
  const auto vanilla = vanilla_mechanism(semantics);
  for (const auto& gene : component_genes()) {
    const auto& key = mechanism.word(gene);
    if (!components().contains(gene, key)) continue;  // known, but without a module
    for (const auto& voided : components().at(gene, key).voids) {
      copy(slot(voided), vanilla, mechanism);
    }
  }
  return mechanism;
}

Genotype genotype_of(const Mechanism& mechanism) {
  std::vector<std::pair<std::string, GeneValue>> values;
  for (const auto* slot : paper_slots()) {
    values.emplace_back(slot->name, value_of(*slot, mechanism));
  }
  return Genotype(std::move(values));
}

Candidate candidate_of(const Mechanism& mechanism, Semantics semantics) {
  const auto function = canonical(mechanism, semantics);
  return {.name = to_string(function), .genotype = genotype_of(function)};
}

}  // namespace nas
