#include "cli/experiment.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "cli/space.hpp"
#include "config/document.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "data/corpus.hpp"
#include "evaluation/settings.hpp"
#include "search/algorithm.hpp"
#include "search/objective.hpp"
#include "search/problem.hpp"

namespace nas {

namespace {

using Kind = DocumentNode::Kind;
using Integer = std::int64_t;
using Texts = std::vector<std::string>;

constexpr const char* kVanilla = "dot|softmax|none|fixed|bias|0.1";

Texts names(const std::vector<Setting>& settings) {
  Texts names;
  for (const auto& setting : settings) names.push_back(setting.name);
  return names;
}

const PluginSections& plugin_sections() {
  static const PluginSections kSections{
      {"problem", {.key = "name", .plugin = "attention_search"}},
      {"data", {.key = "corpus", .plugin = "wikitext-2"}},
      {"algorithm", {.key = "name", .plugin = "evo_ga", .shared = names(population_settings())}}};
  return kSections;
}

bool contains(const Texts& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

/// Reads a configuration section by section; mistakes collect in `diagnostics_`.
class Reader {
 public:
  explicit Reader(const DocumentNode& document) : document_(document) {}

  Experiment read(const std::filesystem::path& file) {
    read_top(file);
    noting_mistakes("space", [&] {
      experiment_.space = read_space(document_.find("space"), experiment_.semantics, diagnostics_);
    });
    experiment_.model = read_own("model", model_settings());
    experiment_.training = read_own("training", training_settings());
    experiment_.evaluation = read_own("evaluation", evaluation_settings());
    experiment_.problem = read_plugin("problem", problems(), {}, experiment_.problem_settings);
    experiment_.corpus = read_plugin("data", corpora(), {}, experiment_.data);
    experiment_.algorithm = read_plugin("algorithm", algorithms(), population_settings(),
                                        experiment_.algorithm_settings);
    const auto& algorithm = experiment_.algorithm_settings;
    experiment_.population = algorithm.get<Integer>("population");
    experiment_.informed = algorithm.get<Texts>("informed");
    experiment_.informed_share = algorithm.get<double>("informed_share");
    check_model_and_training();
    check_evaluation();
    check_informed();
    diagnostics_.throw_if_any();
    experiment_.resolved = resolved();
    return experiment_;
  }

 private:
  /// Runs `read` and remembers whether it found mistakes in the section: checks of several settings
  /// together would only repeat them.
  template <class Read>
  void noting_mistakes(const std::string& section, Read read) {
    const auto before = diagnostics_.size();
    read();
    if (diagnostics_.size() != before) mistaken_.insert(section);
  }

  void read_top(const std::filesystem::path& file) {
    const auto settings = experiment_settings();
    Texts known = names(settings);
    known.insert(known.end(),
                 {"problem", "space", "model", "data", "training", "evaluation", "algorithm"});
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
    if (experiment_.name.find('/') != std::string::npos || experiment_.name.front() == '.') {
      refuse("name", experiment_.name, "must be the name of a folder: no '/', no '.' in front");
    }
    experiment_.seed = static_cast<std::uint64_t>(top.get<Integer>("seed"));
    experiment_.semantics = parse_semantics(top.get<std::string>("semantics"));
    experiment_.objectives = top.get<Texts>("objectives");
    if (experiment_.objectives.empty()) {
      refuse("objectives", "[]", "must name at least one of " + join(objectives().keys()));
    }
    experiment_.baseline = top.get<std::string>("baseline");
    (void)read_mechanism("baseline", experiment_.baseline, origin_of("baseline"));
  }

  Parameters read_own(const std::string& section, const std::vector<Setting>& settings) {
    Parameters parameters;
    noting_mistakes(section, [&] {
      parameters = read_section(section, document_.find(section), settings, diagnostics_);
    });
    return parameters;
  }

  /// Reads a plug-in section.
  /// @param shared      settings that every plug-in of the section has.
  /// @param parameters  receives these and the plug-in's own.
  /// @return the plug-in's key.
  template <class AnyRegistry>
  std::string read_plugin(const std::string& section, const AnyRegistry& registry,
                          std::vector<Setting> shared, Parameters& parameters) {
    const auto& declared = plugin_sections().find(section)->second;
    Value key = declared.plugin;
    noting_mistakes(section, [&] {
      const auto* node = document_.find(section);
      const auto* named = node != nullptr ? node->find(declared.key) : nullptr;
      const auto path = section + "." + declared.key;
      const Setting setting{.name = declared.key, .default_value = key, .help = "the plug-in"};
      const bool readable =
          named == nullptr || read_value(path, *named, setting, diagnostics_, key);
      const auto& text = std::get<std::string>(key);
      auto settings = std::move(shared);
      Texts ignored{declared.key};
      if (readable && registry.contains(text)) {
        const auto& own = registry.at(text).description.settings;
        settings.insert(settings.end(), own.begin(), own.end());
      } else {
        if (readable) {
          diagnostics_.add(origin_of(section, declared.key), path + ": " + registry.unknown(text));
        }
        // Nobody knows which of the other keys would be right.
        if (node != nullptr) {
          for (const auto& entry : node->entries) ignored.push_back(entry.key);
        }
      }
      parameters = read_section(section, node, settings, diagnostics_, ignored);
    });
    return std::get<std::string>(key);
  }

  /// Where a key is written; where it is not, its section, or the whole document.
  [[nodiscard]] Origin origin_of(const std::string& section, const std::string& key = "") const {
    const auto* node = document_.find(section);
    if (node == nullptr) return document_.origin;
    const auto* value = node->find(key);
    return value != nullptr ? value->origin : node->origin;
  }

  void refuse(const std::string& key, const std::string& value, const std::string& message) {
    const auto dot = key.find('.');
    const auto origin = dot == std::string::npos
                            ? origin_of(key)
                            : origin_of(key.substr(0, dot), key.substr(dot + 1));
    diagnostics_.add(origin, key + " = " + value + ", " + message);
  }

  std::optional<Mechanism> read_mechanism(const std::string& path, const std::string& name,
                                          const Origin& origin) {
    try {
      return parse_mechanism(name, experiment_.semantics);
    } catch (const InputError& error) {
      diagnostics_.add(origin, path + ": " + error.what());
      return std::nullopt;
    }
  }

  void check_model_and_training() {
    const auto width = experiment_.model.get<Integer>("width");
    const auto heads = experiment_.model.get<Integer>("heads");
    if (!mistaken_.contains("model") && width % heads != 0) {
      refuse("model.width", std::to_string(width),
             "must be a multiple of model.heads = " + std::to_string(heads));
    }
    const auto steps = experiment_.training.get<Integer>("steps");
    const auto warmup = experiment_.training.get<Integer>("warmup_steps");
    if (!mistaken_.contains("training") && warmup > steps) {
      refuse("training.warmup_steps", std::to_string(warmup),
             "must be <= training.steps = " + std::to_string(steps));
    }
    auto checkpoints = experiment_.training.get<std::vector<Integer>>("checkpoints");
    std::erase_if(checkpoints, [steps](Integer step) { return step > steps; });
    experiment_.training.set("checkpoints", checkpoints);
  }

  void check_evaluation() {
    const auto digits = [](std::string_view text) {
      constexpr std::size_t kMaxDigits = 4;
      return !text.empty() && text.size() <= kMaxDigits &&
             text.find_first_not_of("0123456789") == std::string_view::npos;
    };
    const auto& workers = experiment_.evaluation.get<std::string>("workers");
    if (workers != "auto" && (!digits(workers) || workers.front() == '0')) {
      refuse("evaluation.workers", workers, "must be auto or an integer in [1, 9999]");
    }
    const auto& device = experiment_.evaluation.get<std::string>("device");
    static const Texts kDevices{"auto", "cpu", "cuda"};
    const bool numbered = device.rfind("cuda:", 0) == 0 && digits(device.substr(5));
    if (!numbered && !contains(kDevices, device)) {
      const auto guess = nearest(device, kDevices);
      refuse("evaluation.device", device,
             "must be one of auto, cpu, cuda, cuda:N" +
                 (guess.empty() ? "" : "; did you mean " + guess + "?"));
    }
  }

  void check_informed() {
    const auto& informed = experiment_.informed;
    if (mistaken_.contains("algorithm") || mistaken_.contains("space")) return;
    if (experiment_.informed_share > 0.0 && informed.empty()) {
      refuse("algorithm.informed_share", shortest(experiment_.informed_share),
             "must be 0 where algorithm.informed names no mechanism");
    }
    if (informed.empty()) return;
    const auto items = document_.find("algorithm")->find("informed")->as_list();
    for (std::size_t i = 0; i < informed.size(); ++i) {
      const auto mechanism = read_mechanism("algorithm.informed", informed[i], items[i].origin);
      if (!mechanism) continue;
      if (const auto why = outside_space(*mechanism); !why.empty()) {
        diagnostics_.add(items[i].origin, "algorithm.informed = " + informed[i] + ", " + why);
      }
    }
  }

  /// @return which gene of a mechanism is not in the space and what is allowed, empty if all are.
  [[nodiscard]] std::string outside_space(const Mechanism& mechanism) const {
    for (const auto& gene : experiment_.space.genes()) {
      if (!gene.categorical()) {
        if (mechanism.attention_dropout < gene.min || mechanism.attention_dropout > gene.max) {
          return "dropout must be in [" + shortest(gene.min) + ", " + shortest(gene.max) +
                 "], as the space is";
        }
      } else if (!offers(gene, mechanism)) {
        return gene.name + " must be one of " + join(gene.options) + ", as the space is";
      }
    }
    return {};
  }

  /// Whether the option that a mechanism has is one of a categorical gene's.
  [[nodiscard]] bool offers(const Gene& gene, const Mechanism& mechanism) const {
    if (gene.name == "bias") return contains(gene.options, mechanism.bias ? "bias" : "no_bias");
    return std::any_of(gene.options.begin(), gene.options.end(), [&](const std::string& option) {
      return component_key(experiment_.semantics, gene.name, option) ==
             mechanism.component(gene.name);
    });
  }

  [[nodiscard]] nlohmann::json resolved_space() const {
    auto space = nlohmann::json::object();
    for (const auto& gene : experiment_.space.genes()) {
      if (gene.name == "bias") {
        for (const auto& option : gene.options) space["bias"].push_back(option == "bias");
      } else if (gene.categorical()) {
        space[gene.name] = gene.options;
      } else {
        space[gene.name] = {{"min", gene.min}, {"max", gene.max}, {"decimals", gene.decimals}};
      }
    }
    return space;
  }

  /// The configuration as it could be written in a file with nothing left to a default.
  [[nodiscard]] nlohmann::json resolved() const {
    const auto plugin = [](const char* section, const std::string& key,
                           const Parameters& parameters) {
      nlohmann::json json = parameters;
      json[plugin_sections().find(section)->second.key] = key;
      return json;
    };
    return {
        {"name", experiment_.name},
        {"seed", experiment_.seed},
        {"semantics", to_string(experiment_.semantics)},
        {"problem", plugin("problem", experiment_.problem, experiment_.problem_settings)},
        {"objectives", experiment_.objectives},
        {"baseline", experiment_.baseline},
        {"space", resolved_space()},
        {"model", experiment_.model},
        {"data", plugin("data", experiment_.corpus, experiment_.data)},
        {"training", experiment_.training},
        {"evaluation", experiment_.evaluation},
        {"algorithm", plugin("algorithm", experiment_.algorithm, experiment_.algorithm_settings)}};
  }

  const DocumentNode& document_;
  Diagnostics diagnostics_;
  std::set<std::string> mistaken_;  ///< sections in which there are mistakes
  Experiment experiment_;
};

/// Appends the differences of two values to `keys`. Maps are compared key by key, lists as a whole.
void compare(const nlohmann::json* recorded, const nlohmann::json* given, const std::string& path,
             std::vector<std::string>& keys) {
  static const std::set<std::string> kWithoutEffect{"name", "evaluation.workers",
                                                    "evaluation.device", "evaluation.keep_models",
                                                    "training.checkpoint_minutes"};
  if (kWithoutEffect.contains(path)) return;
  if (recorded != nullptr && given != nullptr) {
    if (*recorded == *given) return;
    if (recorded->is_object() && given->is_object()) {
      std::set<std::string> names;
      for (const auto* side : {recorded, given}) {
        for (const auto& item : side->items()) names.insert(item.key());
      }
      const auto value = [](const nlohmann::json& side, const std::string& name) {
        return side.contains(name) ? &side.at(name) : nullptr;
      };
      for (const auto& name : names) {
        compare(value(*recorded, name), value(*given, name),
                path.empty() ? name : path + "." + name, keys);
      }
      return;
    }
  }
  const auto text = [](const nlohmann::json* value) {
    return value != nullptr ? value->dump() : "absent";
  };
  keys.push_back(path + ": " + text(recorded) + " -> " + text(given));
}

}  // namespace

std::vector<Setting> experiment_settings() {
  return {
      {.name = "name",
       .default_value = std::string(),
       .help = "of the run and its folder; empty: the name of the file"},
      {.name = "seed",
       .default_value = Integer{42},
       .help = "from which every other seed is derived",
       .min = 0},
      {.name = "semantics",
       .default_value = std::string("corrected"),
       .help = "what the paper's labels compute: the published code's defects repaired, or kept",
       .choices = {"corrected", "published"}},
      {.name = "objectives",
       .default_value = Texts{"perplexity"},
       .help = "what is minimised",
       .choices = objectives().keys()},
      {.name = "baseline",
       .default_value = std::string(kVanilla),
       .help = "mechanism that is trained beside the search"},
  };
}

std::vector<Setting> population_settings() {
  return {
      {.name = "population",
       .default_value = Integer{12},
       .help = "individuals of a generation",
       .min = 1},
      {.name = "informed",
       .default_value = Texts{},
       .help = "known-good mechanisms of the space, by name, for the initial population"},
      {.name = "informed_share",
       .default_value = 0.0,
       .help = "share of the initial population that is taken from informed, in turn",
       .min = 0,
       .max = 1},
  };
}

Experiment load_experiment(const std::filesystem::path& file,
                           const std::vector<std::string>& overrides) {
  const auto document = load_document(file, overrides, plugin_sections());
  return Reader(document).read(file);
}

std::vector<std::string> differing_keys(const nlohmann::json& recorded,
                                        const nlohmann::json& given) {
  std::vector<std::string> keys;
  compare(&recorded, &given, "", keys);
  return keys;
}

}  // namespace nas
