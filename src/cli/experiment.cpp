#include "cli/experiment.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "config/document.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "data/corpus.hpp"
#include "evaluation/settings.hpp"
#include "genotype/component.hpp"
#include "search/algorithm.hpp"
#include "search/objective.hpp"
#include "search/problem.hpp"

namespace nas {

namespace {

using Kind = DocumentNode::Kind;
using Integer = std::int64_t;
using Texts = std::vector<std::string>;

const std::map<std::string, std::string> kSelectors{
    {"data", "corpus"}, {"algorithm", "name"}, {"problem", "name"}};

/// The settings of the `algorithm` section that belong to the search and not to the algorithm.
std::vector<Setting> population_settings() {
  return {
      {.name = "population", .default_value = Integer{12}, .help = "individuals", .min = 1},
      {.name = "informed",
       .default_value = Texts{},
       .help = "known-good mechanisms, by name, for the initial population"},
      {.name = "informed_share",
       .default_value = 0.0,
       .help = "share of the initial population that is taken from `informed`, in turn",
       .min = 0,
       .max = 1},
  };
}

std::vector<Setting> top_settings() {
  return {
      {.name = "name", .default_value = std::string(), .help = "of the run and its folder"},
      {.name = "seed", .default_value = Integer{42}, .help = "of everything random", .min = 0},
      {.name = "semantics",
       .default_value = std::string("corrected"),
       .help = "what the paper's labels compute",
       .choices = {"corrected", "published"}},
      {.name = "objectives",
       .default_value = Texts{"perplexity"},
       .help = "what is minimised",
       .choices = objectives().keys()},
      {.name = "baseline",
       .default_value = std::string("dot|softmax|none|fixed|bias|0.1"),
       .help = "mechanism that is trained beside the search"},
  };
}

/// Reads a configuration piece by piece; mistakes collect in `diagnostics`.
class Reader {
 public:
  explicit Reader(const DocumentNode& document) : document_(document) {}

  Experiment read(const std::filesystem::path& file) {
    read_top(file);
    read_space();
    const auto* model = document_.find("model");
    experiment_.model = read_section("model", model, model_settings(), diagnostics_);
    experiment_.training =
        read_section("training", document_.find("training"), training_settings(), diagnostics_);
    experiment_.evaluation = read_section("evaluation", document_.find("evaluation"),
                                          evaluation_settings(), diagnostics_);
    experiment_.problem = read_plugin("problem", "name", "attention_search", problems(), {},
                                      experiment_.problem_settings);
    experiment_.corpus =
        read_plugin("data", "corpus", "wikitext-2", corpora(), {}, experiment_.data);
    Parameters algorithm;
    experiment_.algorithm =
        read_plugin("algorithm", "name", "evo_ga", algorithms(), population_settings(), algorithm);
    experiment_.population = algorithm.get<Integer>("population");
    experiment_.informed = algorithm.get<Texts>("informed");
    experiment_.informed_share = algorithm.get<double>("informed_share");
    experiment_.algorithm_settings = algorithm;
    check_together();
    diagnostics_.throw_if_any();
    experiment_.resolved = resolved();
    return experiment_;
  }

 private:
  void read_top(const std::filesystem::path& file) {
    const auto settings = top_settings();
    Texts known{"space", "problem", "model", "training", "evaluation", "data", "algorithm"};
    for (const auto& setting : settings) known.push_back(setting.name);
    check_keys("", document_, known, diagnostics_);
    Parameters top(settings);
    for (const auto& setting : settings) {
      const auto* node = document_.find(setting.name);
      Value value;
      if (node != nullptr && read_value(setting.name, *node, setting, diagnostics_, value)) {
        top.set(setting.name, value);
      }
    }
    experiment_.name = top.get<std::string>("name");
    if (experiment_.name.empty()) experiment_.name = file.stem().string();
    experiment_.seed = static_cast<std::uint64_t>(top.get<Integer>("seed"));
    experiment_.semantics = parse_semantics(top.get<std::string>("semantics"));
    experiment_.objectives = top.get<Texts>("objectives");
    if (experiment_.objectives.empty()) {
      diagnostics_.add(document_.find("objectives")->origin,
                       "objectives = [], must name at least one of " + join(objectives().keys()));
    }
    experiment_.baseline = top.get<std::string>("baseline");
    check_mechanism("baseline", experiment_.baseline, document_.find("baseline"));
  }

  [[nodiscard]] Origin origin_of(const DocumentNode* node) const {
    return node != nullptr ? node->origin : document_.origin;
  }

  void check_mechanism(const std::string& path, const std::string& name, const DocumentNode* node) {
    try {
      (void)parse_mechanism(name, experiment_.semantics);
    } catch (const InputError& error) {
      diagnostics_.add(origin_of(node), path + ": " + error.what());
    }
  }

  // -- space
  // ----------------------------------------------------------------------------------------------------------

  void read_space() {
    const auto* space = document_.find("space");
    static const DocumentNode kEmpty;
    if (space == nullptr || space->kind == Kind::null) space = &kEmpty;
    if (space->kind != Kind::map && space != &kEmpty) {
      diagnostics_.add(space->origin, "space = " + space->summary() + ", must be a map of genes");
      return;
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
    experiment_.space = SearchSpace(std::move(genes));
  }

  Gene component_gene(const std::string& gene, const DocumentNode* node) {
    Gene result{.name = gene, .options = paper_labels(gene)};
    if (node == nullptr) return result;
    const std::string path = "space." + gene;
    if (node->kind != Kind::list || node->items.empty()) {
      diagnostics_.add(node->origin,
                       path + " = " + node->summary() + ", must be a list of at least one option");
      return result;
    }
    Texts valid = paper_labels(gene);
    for (const auto& key : components().keys(gene)) {
      if (std::find(valid.begin(), valid.end(), key) == valid.end()) valid.push_back(key);
    }
    Texts options;
    std::map<std::string, std::string> option_of_key;
    for (const auto& item : node->items) {
      const auto& option = item.text;
      const auto key = component_key(experiment_.semantics, gene, option);
      if (item.kind != Kind::scalar || !components().contains(gene, key)) {
        const auto guess = nearest(option, valid);
        diagnostics_.add(item.origin, path + ": unknown option " + item.summary() +
                                          ", known: " + join(valid) +
                                          (guess.empty() ? "" : "; did you mean " + guess + "?"));
        continue;
      }
      const auto [same, fresh] = option_of_key.try_emplace(key, option);
      if (!fresh) {
        diagnostics_.add(item.origin, path + ": " + same->second + " and " + option +
                                          " are the same component, " + key);
        continue;
      }
      options.push_back(option);
    }
    if (!options.empty()) result.options = std::move(options);
    return result;
  }

  Gene bias_gene(const DocumentNode* node) {
    Gene gene{.name = "bias", .options = {"bias", "no_bias"}};
    if (node == nullptr) return gene;
    const auto wrong = [&](const DocumentNode& at) {
      diagnostics_.add(at.origin, "space.bias = " + node->summary() +
                                      ", must be a list of true, false or both, each once");
      return gene;
    };
    const std::vector<DocumentNode> single{*node};
    const auto& items = node->kind == Kind::list ? node->items : single;
    if (items.empty()) return wrong(*node);
    Texts options;
    for (const auto& item : items) {
      if (item.kind != Kind::scalar || (item.text != "true" && item.text != "false"))
        return wrong(item);
      options.emplace_back(item.text == "true" ? "bias" : "no_bias");
    }
    if (std::set<std::string>(options.begin(), options.end()).size() != options.size()) {
      return wrong(*node);
    }
    gene.options = std::move(options);
    return gene;
  }

  Gene dropout_gene(const DocumentNode* node) {
    Gene gene{.name = "attention_dropout", .min = 0.0, .max = 0.3};
    if (node == nullptr) return gene;
    const auto bound = [](std::string name, double value) {
      return Setting{.name = std::move(name),
                     .default_value = value,
                     .help = "dropout of the attention weights",
                     .min = 0,
                     .max = 1,
                     .max_exclusive = true};
    };
    if (node->kind == Kind::scalar) {
      Value value;
      if (read_value("space.attention_dropout", *node, bound("attention_dropout", 0.0),
                     diagnostics_, value)) {
        gene.min = gene.max = std::get<double>(value);
      }
      return gene;
    }
    const auto bounds = read_section("space.attention_dropout", node,
                                     {bound("min", gene.min),
                                      bound("max", gene.max),
                                      {.name = "decimals",
                                       .default_value = Integer{-1},
                                       .help = "values are rounded to so many; -1 = not at all",
                                       .min = -1,
                                       .max = 12}},
                                     diagnostics_);
    gene.min = bounds.get<double>("min");
    gene.max = bounds.get<double>("max");
    gene.decimals = static_cast<int>(bounds.get<Integer>("decimals"));
    if (gene.min > gene.max) {
      diagnostics_.add(node->origin,
                       "space.attention_dropout = " + node->summary() + ", min must be <= max");
      gene.max = gene.min;
    }
    return gene;
  }

  // -- plug-ins
  // -------------------------------------------------------------------------------------------------------

  /// Reads a section whose plug-in its `selector` key names; a text alone names the plug-in.
  template <class AnyRegistry>
  std::string read_plugin(const std::string& section, const std::string& selector, std::string key,
                          const AnyRegistry& registry, std::vector<Setting> settings,
                          Parameters& parameters) {
    const auto* node = document_.find(section);
    const auto* named = node;
    if (node != nullptr && node->kind != Kind::scalar) named = node->find(selector);
    if (named != nullptr && named->kind == Kind::scalar) key = named->text;
    if (!registry.contains(key)) {
      diagnostics_.add(origin_of(named), section + "." + selector + ": " + registry.unknown(key));
      parameters = Parameters(settings);
      return key;
    }
    const auto& own = registry.at(key).description.settings;
    settings.insert(settings.end(), own.begin(), own.end());
    const bool has_settings = node != nullptr && node->kind != Kind::scalar;
    parameters =
        read_section(section, has_settings ? node : nullptr, settings, diagnostics_, {selector});
    return key;
  }

  // -- what must fit together
  // -----------------------------------------------------------------------------------------

  void require(bool holds, const char* section, const char* key, const std::string& message) {
    if (holds) return;
    const auto* node = document_.find(section);
    const auto* value = node != nullptr && node->kind == Kind::map ? node->find(key) : nullptr;
    diagnostics_.add(value != nullptr ? value->origin : origin_of(node),
                     std::string(section) + "." + key + message);
  }

  void check_together() {
    const auto width = experiment_.model.get<Integer>("width");
    const auto heads = experiment_.model.get<Integer>("heads");
    require(width % heads == 0, "model", "width",
            " = " + std::to_string(width) +
                ", must be a multiple of model.heads = " + std::to_string(heads));
    const auto steps = experiment_.training.get<Integer>("steps");
    const auto warmup = experiment_.training.get<Integer>("warmup_steps");
    require(warmup <= steps, "training", "warmup_steps",
            " = " + std::to_string(warmup) +
                ", must be at most training.steps = " + std::to_string(steps));
    // Validation steps beyond the end are dropped, not refused: a shorter training is one override.
    auto checkpoints = experiment_.training.get<std::vector<Integer>>("checkpoints");
    std::erase_if(checkpoints, [steps](Integer step) { return step > steps; });
    experiment_.training.set("checkpoints", checkpoints);
    check_workers();
    for (const auto& name : experiment_.informed) {
      check_mechanism("algorithm.informed", name, document_.find("algorithm"));
    }
    require(
        experiment_.informed_share == 0.0 || !experiment_.informed.empty(), "algorithm",
        "informed_share",
        " = " + shortest(experiment_.informed_share) + ", needs mechanisms in algorithm.informed");
  }

  void check_workers() {
    const auto& workers = experiment_.evaluation.get<std::string>("workers");
    const bool number = !workers.empty() && workers.size() < 5 && workers.front() != '0' &&
                        workers.find_first_not_of("0123456789") == std::string::npos;
    require(workers == "auto" || number, "evaluation", "workers",
            " = " + workers + ", must be auto or a number >= 1");
    const auto& device = experiment_.evaluation.get<std::string>("device");
    const bool indexed = device.rfind("cuda:", 0) == 0 && device.size() > 5 &&
                         device.find_first_not_of("0123456789", 5) == std::string::npos;
    require(device == "auto" || device == "cpu" || device == "cuda" || indexed, "evaluation",
            "device", " = " + device + ", must be auto, cpu, cuda or cuda:N");
  }

  [[nodiscard]] nlohmann::json resolved() const {
    nlohmann::json space = nlohmann::json::object();
    for (const auto& gene : experiment_.space.genes()) {
      if (gene.categorical()) {
        space[gene.name] = gene.options;
      } else {
        space[gene.name] = {{"min", gene.min}, {"max", gene.max}, {"decimals", gene.decimals}};
      }
    }
    const auto with = [](const Parameters& parameters, const char* key, const std::string& value) {
      nlohmann::json json = parameters;
      json[key] = value;
      return json;
    };
    return {{"name", experiment_.name},
            {"seed", experiment_.seed},
            {"semantics", to_string(experiment_.semantics)},
            {"space", space},
            {"problem", with(experiment_.problem_settings, "name", experiment_.problem)},
            {"objectives", experiment_.objectives},
            {"baseline", experiment_.baseline},
            {"model", experiment_.model},
            {"data", with(experiment_.data, "corpus", experiment_.corpus)},
            {"training", experiment_.training},
            {"evaluation", experiment_.evaluation},
            {"algorithm", with(experiment_.algorithm_settings, "name", experiment_.algorithm)}};
  }

  const DocumentNode& document_;
  Diagnostics diagnostics_;
  Experiment experiment_;
};

}  // namespace

Experiment load_experiment(const std::filesystem::path& file,
                           const std::vector<std::string>& overrides) {
  const auto document = load_document(file, overrides, kSelectors);
  return Reader(document).read(file);
}

std::vector<std::string> differing_keys(const nlohmann::json& recorded,
                                        const nlohmann::json& given) {
  static const std::set<std::string> kNoResult{"/name", "/evaluation/workers", "/evaluation/device",
                                               "/evaluation/keep_models",
                                               "/training/checkpoint_minutes"};
  // flatten() makes one entry an item of a list; lists are compared whole, as the user wrote them.
  std::vector<std::string> keys;
  const auto visit = [&](auto&& self, const nlohmann::json& a, const nlohmann::json& b,
                         const std::string& path) -> void {
    if (a == b || kNoResult.contains(path)) return;
    if (!a.is_object() || !b.is_object()) {
      std::string dotted = path.substr(1);
      std::replace(dotted.begin(), dotted.end(), '/', '.');
      keys.push_back(dotted + ": " + a.dump() + " -> " + b.dump());
      return;
    }
    std::set<std::string> names;
    for (const auto* side : {&a, &b}) {
      for (const auto& item : side->items()) names.insert(item.key());
    }
    for (const auto& name : names) {
      self(self, a.value(name, nlohmann::json()), b.value(name, nlohmann::json()),
           path + "/" + name);
    }
  };
  visit(visit, recorded, given, "");
  return keys;
}

}  // namespace nas
