#include "study/space.hpp"

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/format.hpp"
#include "genotype/component.hpp"

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
    Texts known(kComponentGenes.begin(), kComponentGenes.end());
    known.insert(known.end(), {"bias", "attention_dropout"});
    check_keys("space", *space, known, diagnostics_);
    std::vector<Gene> genes;
    for (const auto gene : kComponentGenes) {
      genes.push_back(component_gene(std::string(gene), space->find(gene)));
    }
    genes.push_back(bias_gene(space->find("bias")));
    genes.push_back(dropout_gene(space->find("attention_dropout")));
    return SearchSpace(std::move(genes));
  }

 private:
  void refuse(const DocumentNode& node, const std::string& path, const std::string& message) {
    diagnostics_.add(node.origin, path + " = " + node.summary() + ", " + message);
  }

  Gene component_gene(const std::string& gene, const DocumentNode* node) {
    Gene result{.name = gene, .options = paper_labels(gene)};
    if (node == nullptr) return result;
    const std::string path = "space." + gene;
    if (node->kind == Kind::null || node->kind == Kind::map || node->as_list().empty()) {
      refuse(*node, path, "must be a list of at least one option");
      return result;
    }
    Texts options;
    std::map<std::string, std::string> option_of_key;
    for (const auto& item : node->as_list()) {
      const auto key = component_key(semantics_, gene, item.text);
      if (item.kind != Kind::scalar || !components().contains(gene, key)) {
        const auto valid = component_options(gene);
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
    if (!options.empty()) result.options = std::move(options);
    return result;
  }

  Gene bias_gene(const DocumentNode* node) {
    Gene gene{.name = "bias", .options = {"bias", "no_bias"}};
    if (node == nullptr) return gene;
    Texts options;
    for (const auto& item : node->as_list()) {
      const bool is_bool = item.kind == Kind::scalar && !item.quoted &&
                           (item.text == "true" || item.text == "false");
      const std::string option = item.text == "true" ? "bias" : "no_bias";
      if (!is_bool || contains(options, option)) {
        refuse(item, "space.bias", "must be a list of true, false or both, each once");
        return gene;
      }
      options.push_back(option);
    }
    if (options.empty()) {
      refuse(*node, "space.bias", "must be a list of true, false or both, each once");
      return gene;
    }
    gene.options = std::move(options);
    return gene;
  }

  Gene dropout_gene(const DocumentNode* node) {
    Gene gene{.name = "attention_dropout", .min = 0.0, .max = 0.3, .decimals = 2};
    if (node == nullptr) return gene;
    const std::string path = "space.attention_dropout";
    const auto bound = [](std::string name, double value) {
      return Setting{.name = std::move(name),
                     .default_value = value,
                     .help = "dropout of the attention weights",
                     .min = 0,
                     .max = 1,
                     .max_exclusive = true};
    };
    if (node->kind == Kind::scalar) {
      Value value = gene.min;
      if (read_value(path, *node, bound("attention_dropout", 0.0), diagnostics_, value)) {
        gene.min = gene.max = std::get<double>(value);
      }
      return gene;
    }
    if (node->kind != Kind::map) {
      refuse(*node, path, "must be a number or {min: ..., max: ...}");
      return gene;
    }
    const Setting decimals{.name = "decimals",
                           .default_value = std::int64_t{gene.decimals},
                           .help = "values are rounded to so many; -1 = not at all",
                           .min = -1,
                           .max = 12};
    const auto bounds = read_section(
        path, node, {bound("min", gene.min), bound("max", gene.max), decimals}, diagnostics_);
    const auto min = bounds.get<double>("min");
    const auto max = bounds.get<double>("max");
    if (min > max) {
      refuse(*node, path, "min = " + shortest(min) + " must be <= max = " + shortest(max));
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

std::vector<std::string> component_options(std::string_view gene) {
  Texts options = paper_labels(gene);
  for (const auto& key : components().keys(gene)) {
    if (!contains(options, key)) options.push_back(key);
  }
  return options;
}

SearchSpace read_space(const DocumentNode* node, Semantics semantics, Diagnostics& diagnostics) {
  return SpaceReader(semantics, diagnostics).read(node);
}

}  // namespace nas
