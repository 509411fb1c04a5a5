#include "study/reader/space.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/setting_forms.hpp"
#include "core/words.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/component.hpp"
#include "genotype/field_words.hpp"
#include "genotype/layer_rules.hpp"
#include "genotype/slots.hpp"
#include "search/gene_place.hpp"

namespace nas {

namespace {

using Kind = DocumentNode::Kind;
using Texts = std::vector<std::string>;

/// Of a range of numbers.
Setting log_setting() {
  return {.name = "log",
          .default_value = false,
          .help = "whether all orders of magnitude are drawn alike; min must be > 0"};
}

class SpaceReader {
 public:
  SpaceReader(Semantics semantics, std::int64_t layers, Diagnostics& diagnostics)
      : semantics_(semantics), layers_(layers), diagnostics_(diagnostics) {}

  /// @param space  the section, or nullptr: the paper's space.
  [[nodiscard]] SearchSpace read(const DocumentNode* space) {
    static const DocumentNode kEmpty;
    const bool empty_override =
        space != nullptr && space->kind == Kind::null && space->origin.line == 0;
    if (space == nullptr) space = &kEmpty;
    if (empty_override || (space->kind != Kind::map && space->kind != Kind::null)) {
      refuse(*space, "space", "must be a map of genes");
      space = &kEmpty;
    }
    const auto period = read_period(*space);
    Texts known;
    std::map<std::string, Gene> genes;  // by slot
    Texts listed;
    for (const auto& slot : slots()) {
      known.push_back(slot.name);
      const auto* node = space->find(slot.name);
      if (node == nullptr && !slot.paper) continue;
      if (!slot.paper && semantics_ == Semantics::published) {
        refuse(*node, "space." + slot.name,
               "must be left out: semantics: published knows the paper's genes only");
        continue;
      }
      // A run of before may have recorded it.
      if (!has_effect(slot) && node->origin.source != kRecordedConfiguration) {
        refuse(*node, "space." + slot.name, "must be left out: no module computes what it is of");
        continue;
      }
      listed.push_back(slot.name);
      genes[slot.name] = node == nullptr     ? searched(slot)
                         : slot.is_flag()    ? flag_gene(slot, *node)
                         : slot.is_number()  ? number_gene(slot, *node)
                         : slot.is_integer() ? integer_gene(slot, *node)
                                             : option_gene(slot, *node);
    }
    known.insert(known.end(), {"stack", "period"});
    for (auto& setting : space_settings()) known.push_back(std::move(setting.name));
    check_keys("space", *space, known, diagnostics_);
    std::vector<Gene> in_order;
    for (auto& name : gene_names(listed, period)) {
      in_order.push_back(genes.at(std::string(place_of(name).slot)));
      in_order.back().name = std::move(name);
    }
    return SearchSpace(std::move(in_order));
  }

 private:
  void refuse(const DocumentNode& node, const std::string& path, const std::string& message) {
    diagnostics_.add(node.origin, path + " = " + node.summary() + ", " + message);
  }

  /// Number of slots that layers take in turn.
  std::size_t read_period(const DocumentNode& space) {
    const auto stack =
        setting::choice("stack", "uniform", {"uniform", "cycle", "free"},
                        "whether all layers have the same genes, take slots in turn, or "
                        "have each genes of their own");
    const auto period = setting::integer("period", 2, 2, static_cast<double>(kMostLayers),
                                         "slots that layers take in turn");
    Value how = stack.default_value;
    if (const auto* node = space.find("stack")) {
      if (!read_value("space.stack", *node, stack, diagnostics_, how)) return 1;
    }
    const auto& kind = std::get<std::string>(how);
    const bool cycles = kind == "cycle";
    if (kind != "uniform" && semantics_ == Semantics::published) {
      refuse(*space.find("stack"), "space.stack",
             "must be uniform: semantics: published knows the paper's genes only");
      return 1;
    }
    const auto* node = space.find("period");
    if (node == nullptr) {
      if (cycles) {
        diagnostics_.add(space.find("stack")->origin,
                         "space.period: is missing, must be an integer in [2, " +
                             std::to_string(kMostLayers) + "] where space.stack is cycle");
      }
      return kind == "free" ? static_cast<std::size_t>(layers_) : 1;
    }
    Value slots = period.default_value;
    if (!read_value("space.period", *node, period, diagnostics_, slots)) return 1;
    if (!cycles) {
      refuse(*node, "space.period", "must be left out where space.stack is " + kind);
      return 1;
    }
    return static_cast<std::size_t>(std::get<std::int64_t>(slots));
  }

  /// Whether an option may be listed; refuses it if not.
  /// @param key  of the component that it stands for, or the option itself.
  bool takes(const Slot& slot, const DocumentNode& item, const std::string& key) {
    if (is_text(slot)) return is_allowed(slot, item.text, item);
    const auto valid = nas::options(slot);
    const bool known = item.kind == Kind::scalar &&
                       (slot.paper && slot.is_component() ? components().contains(slot.name, key)
                                                          : holds(valid, item.text));
    if (known) return true;
    const auto path = "space." + slot.name;
    if (item.kind == Kind::scalar && holds(slot.choices, key)) {
      diagnostics_.add(item.origin, path + " = " + item.summary() + ": no module computes it");
      return false;
    }
    refuse(item, path, "must be one of " + join(valid) + lead(item.text, valid, /*listed=*/true));
    return false;
  }

  /// Of components and words.
  Gene option_gene(const Slot& slot, const DocumentNode& node) {
    auto gene = searched(slot);
    const auto path = "space." + slot.name;
    if (node.kind == Kind::null || node.kind == Kind::map || node.as_list().empty()) {
      refuse(node, path, "must be a list of at least one option");
      return gene;
    }
    Texts options;
    std::map<std::string, std::string> option_of_key;
    for (const auto& item : node.as_list()) {
      auto key = slot.is_component() ? component_key(semantics_, slot.name, item.text) : item.text;
      if (!takes(slot, item, key)) continue;
      if (is_text(slot)) key = read_text(slot, key);
      const auto [same, fresh] = option_of_key.try_emplace(key, item.text);
      if (!fresh) {
        refuse(item, path,
               same->second == item.text
                   ? "is given twice"
                   : same->second + " and " + item.text + " are the same component");
        continue;
      }
      options.push_back(is_text(slot) ? key : item.text);
    }
    if (!options.empty()) gene = {.name = slot.name, .options = std::move(options)};
    return gene;
  }

  Gene integer_gene(const Slot& slot, const DocumentNode& node) {
    const auto path = "space." + slot.name;
    Gene gene{.name = slot.name};
    if (node.kind == Kind::null || node.kind == Kind::map || node.as_list().empty()) {
      refuse(node, path, "must be a list of at least one integer");
    } else {
      for (const auto& item : node.as_list()) {
        Value value = std::int64_t{0};
        const Setting setting{.name = slot.name, .default_value = value, .help = slot.help};
        if (!read_value(path, item, setting, diagnostics_, value)) continue;
        const auto option = std::to_string(std::get<std::int64_t>(value));
        if (!is_allowed(slot, option, item)) continue;
        if (holds(gene.options, option)) {
          refuse(item, path, "is given twice");
          continue;
        }
        gene.options.push_back(option);
      }
    }
    // After a mistake, so that the gene has an option.
    if (gene.options.empty()) gene.options.emplace_back("1");
    return gene;
  }

  /// Whether a number is one that the slot may have; refuses it if not.
  bool is_allowed(const Slot& slot, const std::string& number, const DocumentNode& node) {
    try {
      Mechanism mechanism;
      choose(slot, number, semantics_, mechanism);
      return true;
    } catch (const InputError& error) {
      diagnostics_.add(node.origin, "space." + std::string(error.what()));
      return false;
    }
  }

  Gene flag_gene(const Slot& slot, const DocumentNode& node) {
    auto gene = searched(slot);
    const auto refuse_all = [&](const DocumentNode& at) {
      refuse(at, "space." + slot.name, "must be a list of true, false or none, each once");
      return gene;
    };
    Texts options;
    for (const auto& item : node.as_list()) {
      const auto truth = truth_of(item);
      const bool is_none = item.kind == Kind::scalar && item.text == "none";
      if (is_none && semantics_ == Semantics::published) {
        refuse(item, "space." + slot.name,
               "must be true or false: semantics: published knows the paper's options only");
        return gene;
      }
      const auto option = is_none ? item.text : option_text(slot, truth == true);
      if (!(truth || is_none) || holds(options, option)) return refuse_all(item);
      options.push_back(option);
    }
    if (options.empty()) return refuse_all(node);
    gene.options = std::move(options);
    return gene;
  }

  Gene number_gene(const Slot& slot, const DocumentNode& node) {
    auto gene = searched(slot);
    const auto path = "space." + slot.name;
    const auto bound = [&slot](std::string name, double value) {
      Setting setting{
          .name = std::move(name), .default_value = value, .help = slot.help, .min = slot.min};
      if (slot.is_bounded()) {
        setting.max = slot.max;
        setting.max_exclusive = slot.max_exclusive;
      }
      return setting;
    };
    if (node.kind == Kind::scalar) {
      Value value = gene.min;
      if (read_value(path, node, bound(slot.name, slot.min), diagnostics_, value)) {
        gene.min = gene.max = std::get<double>(value);
      }
      return gene;
    }
    if (node.kind != Kind::map) {
      refuse(node, path, "must be a number or {min: ..., max: ...}");
      return gene;
    }
    const auto decimals = setting::integer("decimals", gene.decimals, -1, 12,
                                           "values are rounded to so many; -1 = not at all");
    // Records of before had no such setting.
    const bool before = node.origin.source == kRecordedConfiguration;
    const auto digits = setting::integer("digits", before ? gene.digits : 3, 1, 12,
                                         "significant digits of values that are drawn by log");
    const auto bounds = read_section(
        path, &node,
        {bound("min", gene.min), bound("max", gene.max), decimals, log_setting(), digits},
        diagnostics_);
    const auto min = bounds.get<double>("min");
    const auto max = bounds.get<double>("max");
    if (min > max) {
      refuse(node, path, "min = " + shortest(min) + " must be <= max = " + shortest(max));
      return gene;
    }
    gene.min = min;
    gene.max = max;
    gene.decimals = static_cast<int>(bounds.get<std::int64_t>("decimals"));
    gene.log = bounds.get<bool>("log");
    if (gene.log) gene.digits = static_cast<int>(bounds.get<std::int64_t>("digits"));
    if (const auto* given = node.find("digits"); given != nullptr && !gene.log)
      refuse(*given, path + ".digits", "must be left out where log is false");
    if (gene.log && node.find("decimals") == nullptr) gene.decimals = -1;
    if (gene.log && min <= 0.0) {
      refuse(node, path, "min = " + shortest(min) + ", must be > 0 where log is true");
      gene.log = false;
    }
    const auto rounded = [&gene](double value) {
      return std::round(value * std::pow(10.0, gene.decimals));
    };
    if (min < max && gene.decimals >= 0 && rounded(min) == rounded(max)) {
      refuse(node, path,
             "min = " + shortest(min) + " and max = " + shortest(max) +
                 " are one value by decimals = " + std::to_string(gene.decimals) +
                 ": give more decimals, or one number");
    }
    return gene;
  }

  Semantics semantics_;
  std::int64_t layers_;
  Diagnostics& diagnostics_;
};

/// The genes of one value, which are the frame of a space.
Genotype fixed_genes(const SearchSpace& space) {
  std::vector<std::pair<std::string, GeneValue>> values;
  for (const auto& gene : space.genes()) {
    if (gene.varies()) continue;
    values.emplace_back(gene.name,
                        gene.categorical() ? GeneValue(gene.options.front()) : GeneValue(gene.min));
  }
  return Genotype(std::move(values));
}

/// What a gene offers, of a range its ends.
std::vector<GeneValue> shown_values(const Gene& gene) {
  if (!gene.categorical()) return {gene.min, gene.max};
  return {gene.options.begin(), gene.options.end()};
}

/// A value that a gene offers and that makes the same model: of a gene without effect any, of
/// kv_heads as many as there are heads.
std::optional<GeneValue> equivalent(const Gene& gene, const Architecture& architecture,
                                    const std::string& wanted) {
  std::vector<GeneValue> values(gene.options.begin(), gene.options.end());
  if (!gene.categorical()) values.emplace_back(gene.min);
  for (auto& value : values) {
    try {
      const auto other = architecture_of(Genotype({{gene.name, value}}), architecture);
      if (to_string(canonical(other)) == wanted) return std::move(value);
    } catch (const InputError&) {
      continue;  // there is no such model
    }
  }
  return std::nullopt;
}

std::string allowed_text(const Gene& gene) {
  return gene.categorical() ? "one of " + join(gene.options)
                            : "in [" + shortest(gene.min) + ", " + shortest(gene.max) + "]";
}

}  // namespace

SearchSpace read_space(const DocumentNode* node, Semantics semantics, std::int64_t layers,
                       Diagnostics& diagnostics) {
  return SpaceReader(semantics, layers, diagnostics).read(node);
}

std::vector<Setting> space_settings() {
  return {
      setting::any("match_parameters", false,
                   "whether feed-forward layers get the hidden width that brings a model nearest "
                   "to the parameters of the vanilla one; what would need less than half of "
                   "model.width, or has none, is rejected"),
      setting::any(
          "merge_section", true,
          "whether a candidate whose own genes training.X say what section training says is "
          "the one without them; false: as in runs of before this setting")};
}

bool read_space_setting(std::string_view name, const DocumentNode* node, Diagnostics& diagnostics) {
  const auto settings = space_settings();
  const auto& setting = *std::find_if(settings.begin(), settings.end(),
                                      [&](const auto& one) { return one.name == name; });
  Value value = setting.default_value;
  const auto* given = node != nullptr ? node->find(setting.name) : nullptr;
  if (given != nullptr) read_value("space." + setting.name, *given, setting, diagnostics, value);
  return std::get<bool>(value);
}

nlohmann::json space_json(const SearchSpace& space) {
  auto section = nlohmann::json::object();
  if (const auto period = period_of(space); period > 1) {
    section["stack"] = "cycle";
    section["period"] = period;
  }
  for (const auto& gene : space.genes()) {
    const auto& slot = nas::slot(place_of(gene.name).slot);
    if (section.contains(slot.name)) continue;  // all slots of a cycle offer the same
    auto& json = section[slot.name];
    if (!gene.categorical()) {
      json = {{"min", gene.min}, {"max", gene.max}, {"decimals", gene.decimals}};
      if (gene.log) json["log"] = true;
      if (gene.digits != Gene{}.digits) json["digits"] = gene.digits;
    }
    for (const auto& option : gene.options) json.push_back(option_json(slot, option));
  }
  return section;
}

std::string vanilla_of(const SearchSpace& space, const Architecture& frame) {
  return to_string(canonical(architecture_of(fixed_genes(space), vanilla_architecture(frame))));
}

SearchSpace with_value(const SearchSpace& space, const std::string& gene, const GeneValue& value) {
  auto genes = space.genes();
  for (auto& one : genes) {
    if (one.name != gene) continue;
    if (one.categorical()) {
      one.options = {std::get<std::string>(value)};
    } else {
      one.min = one.max = std::get<double>(value);
    }
  }
  return SearchSpace(std::move(genes));
}

std::string refusal_of(const SearchSpace& space, const Architecture& frame) {
  const auto refusal = [&frame](const SearchSpace& fixed) -> std::string {
    try {
      (void)vanilla_of(fixed, frame);
      return {};
    } catch (const InputError& error) {
      return error.what();
    }
  };
  auto why = refusal(space);
  if (why.empty()) return why;
  for (const auto& gene : space.genes()) {
    if (!gene.varies()) continue;
    for (const auto& value : shown_values(gene)) {
      if (refusal(with_value(space, gene.name, value)).empty()) return {};
    }
  }
  return why;
}

std::vector<std::string> idle_slots(const SearchSpace& space, Semantics semantics) {
  Texts idle;
  for (const auto& gene : space.genes()) {
    const std::string name(place_of(gene.name).slot);
    const auto& slot = nas::slot(name);
    // Of the paper's genes a space has a value each where it names none.
    if ((!gene.varies() && slot.paper) || slot.model || holds(idle, name)) continue;
    const auto prefix = gene.name.substr(0, gene.name.size() - name.size());
    // What the space offers of another slot, by component keys.
    const auto offers = [&](const std::string& other) {
      Texts keys;
      for (const auto& one : space.genes()) {
        if (one.name != prefix + other) continue;
        for (const auto& option : one.options) {
          keys.push_back(component_key(semantics, other, option));
        }
      }
      return keys.empty() ? Texts{text(nas::slot(other), Mechanism{})} : keys;
    };
    const auto all_of = [&](const std::string& other, const auto& are_so) {
      const auto keys = offers(other);
      return std::all_of(keys.begin(), keys.end(), are_so);
    };
    const auto voiding = voided_by(slot);
    const bool voided = std::any_of(voiding.begin(), voiding.end(), [&](const auto& voids) {
      return all_of(voids.first, [&](const auto& key) { return holds(voids.second, key); });
    });
    const bool without_owner = !slot.owner.empty() && all_of(slot.owner, [&slot](const auto& key) {
      return !holds(slot.owner_options, key);
    });
    const bool without_mixer = !slot.model && all_of("mixer", [&slot](const auto& mixer) {
      return !has_gene(mixer, slot);
    });
    if (voided || without_owner || without_mixer) idle.push_back(name);
  }
  return idle;
}

Genotype genotype_in(const SearchSpace& space, const Architecture& architecture,
                     const Architecture& frame) {
  const auto wanted = to_string(canonical(architecture));
  auto spread = architecture;  // a layer for each of the space, so that one can be changed alone
  for (auto i = spread.stack.size(); i < period_of(space); ++i) {
    spread.stack.push_back(architecture.layer(static_cast<std::int64_t>(i)));
  }
  std::vector<std::pair<std::string, GeneValue>> values;
  for (const auto& gene : space.genes()) {
    auto value = offered(gene, spread);
    if (!value) value = equivalent(gene, spread, wanted);
    if (!value) {
      throw InputError(gene.name + " must be " + allowed_text(gene) + ", as the space is");
    }
    values.emplace_back(gene.name, std::move(*value));
  }
  Genotype genotype(std::move(values));
  const auto found = to_string(canonical(architecture_of(genotype, frame)));
  if (found != wanted) {
    throw InputError(
        "must be of the space, which lacks some of its genes: as one of the space it is " + found);
  }
  return genotype;
}

}  // namespace nas
