#include "search/gene_place.hpp"

#include <algorithm>
#include <charconv>

#include "core/error.hpp"
#include "genotype/slots.hpp"

namespace nas {

GenePlace place_of(std::string_view gene) {
  constexpr std::string_view kSlot = "slot";
  const auto dot = gene.find('.');
  if (dot == std::string_view::npos || !gene.starts_with(kSlot)) return {.slot = gene};
  std::size_t layer = 0;
  const auto* const end = gene.data() + dot;
  const auto result = std::from_chars(gene.data() + kSlot.size(), end, layer);
  if (result.ec != std::errc() || result.ptr != end) return {.slot = gene};
  return {.slot = gene.substr(dot + 1), .layer = layer};
}

std::size_t period_of(const SearchSpace& space) {
  std::size_t period = 1;
  for (const auto& gene : space.genes()) {
    if (const auto layer = place_of(gene.name).layer) period = std::max(period, *layer + 1);
  }
  return period;
}

bool is_wide(const SearchSpace& space) {
  return std::any_of(space.genes().begin(), space.genes().end(), [](const Gene& gene) {
    const auto* slot = find_slot(gene.name);
    const bool paper = slot != nullptr && slot->paper;
    const bool other_biases =
        gene.name == "bias" &&
        std::any_of(gene.options.begin(), gene.options.end(),
                    [](const auto& option) { return option != "bias" && option != "no_bias"; });
    return !paper || other_biases;
  });
}

std::vector<std::string> gene_names(const std::vector<std::string>& slots, std::size_t period) {
  if (period == 1) return slots;
  std::vector<std::string> names;
  const auto add = [&](bool of_model, const std::string& prefix) {
    for (const auto& name : slots) {
      if (slot(name).model == of_model) names.push_back(prefix + name);
    }
  };
  add(true, "");
  for (std::size_t layer = 0; layer < period; ++layer) {
    add(false, "slot" + std::to_string(layer) + ".");
  }
  return names;
}

std::vector<std::string> gene_names(const nlohmann::json& section) {
  std::vector<std::string> listed;
  for (const auto& slot : slots()) {
    if (slot.paper || section.contains(slot.name)) listed.push_back(slot.name);
  }
  const bool cycle = section.value("stack", "uniform") == "cycle";
  return gene_names(listed, cycle ? section.value("period", std::size_t{1}) : 1);
}

std::string choice_text(std::string_view gene, const Architecture& architecture) {
  const auto place = place_of(gene);
  const auto& slot = nas::slot(place.slot);
  if (slot.model) {
    const bool said = architecture.genes.at(slot) != slot.default_value;
    return text(slot, said ? architecture.genes : architecture.section);
  }
  const auto& stack = architecture.stack;
  if (place.layer) return text(slot, stack[*place.layer % stack.size()]);
  std::vector<std::string> texts;
  for (const auto& mechanism : stack) texts.push_back(text(slot, mechanism));
  const bool alike = std::all_of(texts.begin(), texts.end(),
                                 [&texts](const auto& each) { return each == texts.front(); });
  return alike ? texts.front() : join(texts, "/");
}

}  // namespace nas
