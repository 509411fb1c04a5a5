#include "nn/parts/option_set.hpp"

#include <string>

#include "genotype/slots.hpp"

namespace nas::nn {

namespace {

/// The choices of genes with their sizes.
std::string choices(OptionMaker::Genes genes, const Mechanism& mechanism) {
  std::string text;
  for (const auto* slot : layer_slots()) {
    for (const auto gene : genes) {
      if (slot->name == gene || slot->owner == gene) text += nas::text(*slot, mechanism) + "|";
    }
  }
  return text;
}

}  // namespace

std::string OptionMaker::key(std::string_view gene, const Mechanism& mechanism) {
  return text(slot(gene), mechanism);
}

bool OptionMaker::is_none(std::string_view gene) const {
  return std::all_of(mechanisms_.begin(), mechanisms_.end(),
                     [gene](const Mechanism& mechanism) { return key(gene, mechanism) == "none"; });
}

std::vector<Models> OptionMaker::groups(Genes genes, const Shares& shares) const {
  std::vector<std::string> keys;
  for (std::size_t r = 0; r < mechanisms_.size(); ++r) {
    const bool shared = !shares || shares(mechanisms_[r]);
    keys.push_back(choices(genes, mechanisms_[r]) + (shared ? "" : std::to_string(r)));
  }
  return models_by_key(keys);
}

ParameterScope scope_of(const ParameterScope& scope, const Models& places) {
  Models models;
  for (const auto place : places) {
    models.push_back(scope.models()[static_cast<std::size_t>(place)]);
  }
  return scope.of(std::move(models));
}

std::vector<Models> models_by_key(const std::vector<std::string>& keys) {
  std::vector<Models> groups;
  for (std::size_t r = 0; r < keys.size(); ++r) {
    const auto first = std::find(keys.begin(), keys.end(), keys[r]) - keys.begin();
    const auto known = std::find_if(groups.begin(), groups.end(), [first](const Models& group) {
      return group.front() == first;
    });
    auto& group = known != groups.end() ? *known : groups.emplace_back();
    group.push_back(static_cast<std::int64_t>(r));
  }
  return groups;
}

}  // namespace nas::nn
