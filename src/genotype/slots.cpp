#include "genotype/slots.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "core/error.hpp"
#include "core/format.hpp"
#include "genotype/component.hpp"

namespace nas {

namespace {

Slot components_slot(std::string name, std::string summary, std::string Mechanism::*member) {
  const auto& labels = paper_labels(name);
  return {.name = name,
          .summary = std::move(summary),
          .member = member,
          .searched = {.name = name, .options = labels},
          .vanilla = labels.front()};
}

std::vector<Slot> make_slots() {
  return {
      components_slot("similarity", "how a query and a key make a score", &Mechanism::similarity),
      components_slot("normalization", "how a query's scores become weights",
                      &Mechanism::normalization),
      components_slot("gating", "what scales attention's input or output", &Mechanism::gating),
      components_slot("temperature", "what scores are divided by", &Mechanism::temperature),
      {.name = "bias",
       .summary = "whether the q, k and v projections have biases",
       .member = &Mechanism::bias,
       .words = {"bias", "no_bias"},
       .searched = {.name = "bias", .options = {"bias", "no_bias"}},
       .vanilla = "bias"},
      {.name = "attention_dropout",
       .summary = "dropout of the attention weights",
       .member = &Mechanism::attention_dropout,
       .upper = 1.0,
       .searched = {.name = "attention_dropout", .min = 0.0, .max = 0.3, .decimals = 2},
       .vanilla = 0.1},
  };
}

}  // namespace

const std::vector<Slot>& slots() {
  static const auto kSlots = make_slots();
  return kSlots;
}

const Slot& slot(std::string_view name) {
  for (const auto& slot : slots()) {
    if (slot.name == name) return slot;
  }
  throw std::logic_error("no slot is called " + std::string(name));
}

const std::vector<std::string>& component_genes() {
  static const auto kNames = [] {
    std::vector<std::string> names;
    for (const auto& slot : slots()) {
      if (slot.is_component()) names.push_back(slot.name);
    }
    return names;
  }();
  return kNames;
}

std::vector<std::string> options(const Slot& slot) {
  auto options = slot.searched.options;
  if (!slot.is_component()) return options;
  for (const auto& key : components().keys(slot.name)) {
    if (std::find(options.begin(), options.end(), key) == options.end()) options.push_back(key);
  }
  return options;
}

nlohmann::json option_json(const Slot& slot, const std::string& option) {
  if (slot.is_flag()) return option == slot.words.front();
  return option;
}

std::string option_text(const Slot& slot, const nlohmann::json& option) {
  if (slot.is_flag() && option.is_boolean()) return slot.words[option.get<bool>() ? 0 : 1];
  return option.is_string() ? option.get<std::string>() : option.dump();
}

std::string text(const Slot& slot, const Mechanism& mechanism) {
  if (const auto* key = std::get_if<std::string Mechanism::*>(&slot.member)) {
    return mechanism.*(*key);
  }
  if (const auto* flag = std::get_if<bool Mechanism::*>(&slot.member)) {
    return slot.words[mechanism.*(*flag) ? 0 : 1];
  }
  return shortest(mechanism.*std::get<double Mechanism::*>(slot.member));
}

void choose(const Slot& slot, std::string_view text, Semantics semantics, Mechanism& mechanism) {
  const auto refuse = [&](const std::string& allowed) {
    throw InputError(slot.name + " = " + std::string(text) + ", must be " + allowed);
  };
  if (const auto* key = std::get_if<std::string Mechanism::*>(&slot.member)) {
    mechanism.*(*key) = components().at(slot.name, component_key(semantics, slot.name, text)).key;
    return;
  }
  if (const auto* flag = std::get_if<bool Mechanism::*>(&slot.member)) {
    const auto& [yes, no] = slot.words;
    if (text != yes && text != no) refuse("one of " + yes + ", " + no);
    mechanism.*(*flag) = text == yes;
    return;
  }
  auto& number = mechanism.*std::get<double Mechanism::*>(slot.member);
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end || !(number >= 0.0 && number < slot.upper)) {
    refuse("a number in [0, " + shortest(slot.upper) + ")");
  }
}

void assign(const Slot& slot, const GeneValue& value, Semantics semantics, Mechanism& mechanism) {
  if (const auto* key = std::get_if<std::string Mechanism::*>(&slot.member)) {
    mechanism.*(*key) = component_key(semantics, slot.name, std::get<std::string>(value));
  } else if (const auto* flag = std::get_if<bool Mechanism::*>(&slot.member)) {
    mechanism.*(*flag) = std::get<std::string>(value) == slot.words.front();
  } else {
    mechanism.*std::get<double Mechanism::*>(slot.member) = std::get<double>(value);
  }
}

namespace {

bool voids(const Component& component, const Slot& slot) {
  return std::find(component.voids.begin(), component.voids.end(), slot.name) !=
         component.voids.end();
}

}  // namespace

bool is_active(const Slot& slot, const Mechanism& mechanism) {
  return std::none_of(component_genes().begin(), component_genes().end(), [&](const auto& gene) {
    return voids(components().at(gene, mechanism.component(gene)), slot);
  });
}

std::map<std::string, std::vector<std::string>> voided_by(const Slot& slot) {
  std::map<std::string, std::vector<std::string>> voiding;
  for (const auto& gene : component_genes()) {
    for (const auto& key : components().keys(gene)) {
      if (voids(components().at(gene, key), slot)) voiding[gene].push_back(key);
    }
  }
  return voiding;
}

SearchSpace paper_space() {
  std::vector<Gene> genes;
  for (const auto& slot : slots()) genes.push_back(slot.searched);
  return SearchSpace(std::move(genes));
}

Mechanism mechanism_of(const Genotype& genotype, Semantics semantics) {
  Mechanism mechanism;
  for (const auto& [name, value] : genotype.values()) {
    assign(slot(name), value, semantics, mechanism);
  }
  return mechanism;
}

Genotype genotype_of(const Mechanism& mechanism) {
  std::vector<std::pair<std::string, GeneValue>> values;
  for (const auto& slot : slots()) {
    const auto* number = std::get_if<double Mechanism::*>(&slot.member);
    values.emplace_back(slot.name, number != nullptr ? GeneValue(mechanism.*(*number))
                                                     : GeneValue(text(slot, mechanism)));
  }
  return Genotype(std::move(values));
}

Candidate candidate_of(const Mechanism& mechanism, Semantics semantics) {
  const auto function = canonical(mechanism, semantics);
  return {.name = to_string(function), .genotype = genotype_of(function)};
}

std::optional<GeneValue> offered(const Gene& gene, const Mechanism& mechanism,
                                 Semantics semantics) {
  const auto& slot = nas::slot(gene.name);
  if (slot.is_number()) {
    const double number = mechanism.*std::get<double Mechanism::*>(slot.member);
    if (number < gene.min || number > gene.max) return std::nullopt;
    return number;
  }
  const auto chosen = text(slot, mechanism);
  for (const auto& option : gene.options) {
    // The space's options are as the user wrote them: the one that means this component.
    if ((slot.is_component() ? component_key(semantics, gene.name, option) : option) == chosen) {
      return option;
    }
  }
  return std::nullopt;
}

}  // namespace nas
