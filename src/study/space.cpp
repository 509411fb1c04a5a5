#include "study/space.hpp"

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/format.hpp"
#include "genotype/component.hpp"
#include "genotype/slots.hpp"

namespace nas {

namespace {

using Kind = DocumentNode::Kind;
using Texts = std::vector<std::string>;

bool contains(const Texts& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

class SpaceReader {
 public:
  SpaceReader(Semantics semantics, Diagnostics& diagnostics)
      : semantics_(semantics), diagnostics_(diagnostics) {}

  /// @param space  the section, or nullptr: the paper's space.
  [[nodiscard]] SearchSpace read(const DocumentNode* space) {
    static const DocumentNode kEmpty;
    if (space == nullptr) space = &kEmpty;
    if (space->kind != Kind::map && space->kind != Kind::null) {
      refuse(*space, "space", "must be a map of genes");
      space = &kEmpty;
    }
    Texts known;
    std::vector<Gene> genes;
    for (const auto& slot : slots()) {
      known.push_back(slot.name);
      const auto* node = space->find(slot.name);
      genes.push_back(node == nullptr       ? slot.searched
                      : slot.is_component() ? component_gene(slot, *node)
                      : slot.is_flag()      ? flag_gene(slot, *node)
                                            : number_gene(slot, *node));
    }
    check_keys("space", *space, known, diagnostics_);
    return SearchSpace(std::move(genes));
  }

 private:
  void refuse(const DocumentNode& node, const std::string& path, const std::string& message) {
    diagnostics_.add(node.origin, path + " = " + node.summary() + ", " + message);
  }

  Gene component_gene(const Slot& slot, const DocumentNode& node) {
    auto gene = slot.searched;
    const auto path = "space." + slot.name;
    if (node.kind == Kind::null || node.kind == Kind::map || node.as_list().empty()) {
      refuse(node, path, "must be a list of at least one option");
      return gene;
    }
    Texts options;
    std::map<std::string, std::string> option_of_key;
    for (const auto& item : node.as_list()) {
      const auto key = component_key(semantics_, slot.name, item.text);
      if (item.kind != Kind::scalar || !components().contains(slot.name, key)) {
        const auto valid = nas::options(slot);
        const auto guess = nearest(item.text, valid);
        refuse(item, path,
               "must be one of " + join(valid) +
                   (guess.empty() ? "" : "; did you mean " + guess + "?"));
        continue;
      }
      const auto [same, fresh] = option_of_key.try_emplace(key, item.text);
      if (!fresh) {
        refuse(item, path,
               same->second == item.text
                   ? "is given twice"
                   : same->second + " and " + item.text + " are the same component");
        continue;
      }
      options.push_back(item.text);
    }
    if (!options.empty()) gene.options = std::move(options);
    return gene;
  }

  Gene flag_gene(const Slot& slot, const DocumentNode& node) {
    auto gene = slot.searched;
    const auto refuse_all = [&](const DocumentNode& at) {
      refuse(at, "space." + slot.name, "must be a list of true, false or both, each once");
      return gene;
    };
    Texts options;
    for (const auto& item : node.as_list()) {
      const bool is_bool = item.kind == Kind::scalar && !item.quoted &&
                           (item.text == "true" || item.text == "false");
      const auto option = option_text(slot, item.text == "true");
      if (!is_bool || contains(options, option)) return refuse_all(item);
      options.push_back(option);
    }
    if (options.empty()) return refuse_all(node);
    gene.options = std::move(options);
    return gene;
  }

  Gene number_gene(const Slot& slot, const DocumentNode& node) {
    auto gene = slot.searched;
    const auto path = "space." + slot.name;
    const auto bound = [&slot](std::string name, double value) {
      return Setting{.name = std::move(name),
                     .default_value = value,
                     .help = slot.summary,
                     .min = 0,
                     .max = slot.upper,
                     .max_exclusive = true};
    };
    if (node.kind == Kind::scalar) {
      Value value = gene.min;
      if (read_value(path, node, bound(slot.name, 0.0), diagnostics_, value)) {
        gene.min = gene.max = std::get<double>(value);
      }
      return gene;
    }
    if (node.kind != Kind::map) {
      refuse(node, path, "must be a number or {min: ..., max: ...}");
      return gene;
    }
    const Setting decimals{.name = "decimals",
                           .default_value = std::int64_t{gene.decimals},
                           .help = "values are rounded to so many; -1 = not at all",
                           .min = -1,
                           .max = 12};
    const auto bounds = read_section(
        path, &node, {bound("min", gene.min), bound("max", gene.max), decimals}, diagnostics_);
    const auto min = bounds.get<double>("min");
    const auto max = bounds.get<double>("max");
    if (min > max) {
      refuse(node, path, "min = " + shortest(min) + " must be <= max = " + shortest(max));
      return gene;
    }
    gene.min = min;
    gene.max = max;
    gene.decimals = static_cast<int>(bounds.get<std::int64_t>("decimals"));
    return gene;
  }

  Semantics semantics_;
  Diagnostics& diagnostics_;
};

}  // namespace

SearchSpace read_space(const DocumentNode* node, Semantics semantics, Diagnostics& diagnostics) {
  return SpaceReader(semantics, diagnostics).read(node);
}

}  // namespace nas
