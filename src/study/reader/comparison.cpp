#include "study/reader/comparison.hpp"

#include <algorithm>
#include <utility>

#include "config/document.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/installed.hpp"
#include "core/setting_forms.hpp"
#include "evaluation/settings.hpp"
#include "search/algorithm.hpp"
#include "study/reader/rules.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;
using Kind = DocumentNode::Kind;
using Texts = std::vector<std::string>;

/// Asks that a search may make for each evaluation that it may cause.
constexpr Integer kAsksPerEvaluation = 50;

DocumentNode without(DocumentNode map, const Texts& keys) {
  std::erase_if(map.entries, [&keys](const DocumentNode::Entry& entry) {
    return std::find(keys.begin(), keys.end(), entry.key) != keys.end();
  });
  return map;
}

void put(DocumentNode& map, const std::string& key, const DocumentNode& value) {
  map = without(std::move(map), {key});
  map.entries.push_back({.key = key, .origin = value.origin, .value = value});
}

/// Reads a configuration; mistakes collect in `diagnostics_`.
class Reader {
 public:
  Reader(const DocumentNode& document, std::filesystem::path file)
      : document_(document),
        file_(std::move(file)),
        common_(without(document, {"seeds", "draws", "algorithms", "algorithm", "fidelity"})) {}

  Comparison read() {
    const auto seeds = read_number("seeds");
    comparison_.draws = read_number("draws");
    if (const auto* node = document_.find("fidelity")) {
      diagnostics_.add(node->origin, "fidelity: must be given with items of algorithms");
    }
    const auto* list = document_.find("algorithms");
    if (list == nullptr || list->kind == Kind::null || list->as_list().empty()) {
      diagnostics_.add(list != nullptr ? list->origin : document_.origin,
                       "algorithms: is missing, must be a list of algorithms; nas-run searches "
                       "with one");
    } else {
      if (const auto* node = document_.find("algorithm")) {
        diagnostics_.add(node->origin, "algorithm: must be an item of algorithms");
      }
      for (const auto& item : list->as_list()) read_contender(item, seeds);
    }
    check_draws();
    diagnostics_.throw_if_any();
    return std::move(comparison_);
  }

 private:
  /// One of comparison_settings().
  Integer read_number(const std::string& name) {
    const auto settings = comparison_settings();
    const auto setting = std::find_if(settings.begin(), settings.end(),
                                      [&name](const auto& one) { return one.name == name; });
    Value value = setting->default_value;
    if (const auto* node = document_.find(name)) {
      (void)read_value(name, *node, *setting, diagnostics_, value);
    }
    return std::get<Integer>(value);
  }

  void check_draws() {
    if (comparison_.draws == 0 || comparison_.contenders.empty()) return;
    const auto& problem = comparison_.common().problem_settings;
    const auto mode = problem.contains("mode") ? problem.get<std::string>("mode") : "noisy";
    if (mode == "noisy") return;
    diagnostics_.add(document_.find("draws")->origin,
                     "draws = " + std::to_string(comparison_.draws) +
                         ", must be 0 where problem.mode = " + mode +
                         ": only under noisy are replicates drawn for each mechanism");
  }

  /// @param most  searches of any contender.
  void read_contender(const DocumentNode& item, Integer most) {
    if (item.kind != Kind::map && item.kind != Kind::scalar) {
      diagnostics_.add(item.origin, "algorithms = " + item.summary() +
                                        ", must be names of algorithms, or maps of settings");
      return;
    }
    DocumentNode algorithm = item;
    if (item.kind == Kind::scalar) {
      algorithm = {.kind = Kind::map, .entries = {}, .origin = item.origin};
      put(algorithm, "name", item);
    }
    const auto own = names_of(contender_settings());
    auto rest = own;
    rest.emplace_back("evaluation");
    rest.emplace_back("fidelity");
    auto settings = algorithm;
    std::erase_if(settings.entries, [&own](const auto& entry) {
      return std::find(own.begin(), own.end(), entry.key) == own.end();
    });
    const auto parameters =
        read_section("algorithms", &settings, contender_settings(), diagnostics_);

    auto document = common_;
    put(document, "algorithm", without(algorithm, rest));
    if (const auto* evaluation = algorithm.find("evaluation")) {
      check_keys("algorithms.evaluation", *evaluation, contender_evaluation(), diagnostics_);
      DocumentNode merged{.kind = Kind::map, .entries = {}, .origin = evaluation->origin};
      if (const auto* shared = document.find("evaluation")) merged = *shared;
      for (const auto& entry : evaluation->entries) put(merged, entry.key, entry.value);
      put(document, "evaluation", merged);
    }
    if (const auto* fidelity = algorithm.find("fidelity")) put(document, "fidelity", *fidelity);
    Contender contender;
    contender.experiment = read_experiment(document, file_, diagnostics_);
    contender.name = parameters.get<std::string>("label");
    if (contender.name.empty()) contender.name = contender.experiment.algorithm;
    const auto seeds = parameters.get<Integer>("seeds");
    contender.seeds = seeds == 0 ? most : std::min(most, seeds);
    contender.believes_best_answer = parameters.get<std::string>("belief") == "best_answer";
    check(contender, algorithm);
    comparison_.contenders.push_back(std::move(contender));
  }

  void check_label(const Contender& contender, const DocumentNode& algorithm) {
    for (const auto& other : comparison_.contenders) {
      if (other.name == contender.name) {
        diagnostics_.add(algorithm.origin, "algorithms.label = " + contender.name +
                                               ", must be another one: it is given before");
      }
    }
    const auto* label = algorithm.find("label");
    if (label == nullptr) return;
    if (contender.name != contender.experiment.algorithm && algorithms().contains(contender.name)) {
      diagnostics_.add(label->origin,
                       "algorithms.label = " + contender.name +
                           ", must be another one: it is the name of another algorithm");
    }
    const auto is_separator = [](char c) {
      return c == ',' || static_cast<unsigned char>(c) < ' ';
    };
    if (std::any_of(contender.name.begin(), contender.name.end(), is_separator)) {
      diagnostics_.add(label->origin, "algorithms.label = " + contender.name +
                                          ", must have no comma, which separates names of "
                                          "--algorithms, and no control character");
    }
  }

  void check(Contender& contender, const DocumentNode& algorithm) {
    check_label(contender, algorithm);
    auto& experiment = contender.experiment;
    if (contender.believes_best_answer && experiment.objectives.objectives.size() > 1) {
      diagnostics_.add(algorithm.origin,
                       "algorithms.belief = best_answer, must be record with several objectives: "
                       "none of their answers is the best");
    }
    for (const auto& breach : breaches(RuleStage::comparison, {.experiment = experiment})) {
      const bool own = breach.setting.starts_with("algorithms.");
      diagnostics_.add(own ? algorithm.origin : document_.origin_of(breach.setting), breach.text());
    }
    if (experiment.budget.get<Integer>("asks") == 0) {
      experiment.budget.set("asks",
                            kAsksPerEvaluation * experiment.budget.get<Integer>("evaluations"));
    }
  }

  const DocumentNode& document_;
  std::filesystem::path file_;
  DocumentNode common_;  ///< the part of the document that holds for all
  Diagnostics diagnostics_;
  Comparison comparison_;
};

}  // namespace

std::vector<Setting> comparison_settings() {
  return with_effect(
      Effect::search,
      {setting::integer("seeds", 1000, 1, 1e6,
                        "searches per algorithm; their seeds count from `seed` on"),
       setting::integer(
           "draws", 0, 0, 1e6,
           "tables that answer the searches in turn, their replicates redrawn within each "
           "mechanism; 0 = the recorded table")});
}

std::vector<Setting> contender_settings() {
  return with_effect(
      Effect::search,
      {setting::text("label", "", "name in the comparison; empty: the algorithm's"),
       setting::integer(
           "seeds", 0, 0, 1e6,
           "largest number of searches of this algorithm; 0 = as many as of the others"),
       setting::choice(
           "belief", "record", {"record", "best_answer"},
           "by what its searches rank a candidate: record, all of its evaluations, as a run does; "
           "best_answer, the best one alone, as the published search reports")});
}

const Texts& contender_evaluation() {
  // A table answers without races.
  static const Texts kOwn = [] {
    auto settings = evaluation_settings();
    std::erase_if(settings, [](const Setting& one) {
      return one.name == "racing_replicates" || one.needs.setting == "racing_replicates";
    });
    return names_of(std::move(settings), Effect::search);
  }();
  return kOwn;
}

ComparedAlgorithm Contender::record() const {
  nlohmann::json settings = experiment.algorithm_settings;
  for (const auto& own : contender_evaluation()) {
    settings["evaluation"][own] = experiment.resolved.at("evaluation").at(own);
  }
  if (experiment.fidelity) settings["fidelity"] = *experiment.fidelity;
  if (believes_best_answer) settings["belief"] = "best_answer";
  return {.name = name, .key = experiment.algorithm, .settings = std::move(settings)};
}

nlohmann::json Comparison::resolved() const {
  auto resolved = common().resolved;
  resolved.erase("algorithm");
  resolved.erase("fidelity");
  for (const auto& name : contender_evaluation()) resolved.at("evaluation").erase(name);
  resolved["budget"] = common().budget;
  return resolved;
}

Comparison load_comparison(const std::filesystem::path& file,
                           const std::vector<std::string>& overrides) {
  const auto found = find_configuration(file);
  const auto document = load_document(found, overrides, plugin_sections());
  return Reader(document, found).read();
}

void keep_contenders(Comparison& comparison, const std::vector<std::string>& wanted) {
  Texts known;
  for (const auto& contender : comparison.contenders) known.push_back(contender.name);
  const auto holds = [](const Texts& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  // A name means one contender, the key of an algorithm all of it.
  const auto is_meant = [&](const Contender& contender, const std::string& name) {
    return holds(known, name) ? contender.name == name : contender.experiment.algorithm == name;
  };
  const auto& all = comparison.contenders;
  for (const auto& name : wanted) {
    if (std::any_of(all.begin(), all.end(), [&](const auto& one) { return is_meant(one, name); })) {
      continue;
    }
    throw InputError("command line: --algorithms = " + name + ", must be among " + join(known) +
                     did_you_mean(name, known));
  }
  std::erase_if(comparison.contenders, [&](const Contender& contender) {
    return std::none_of(wanted.begin(), wanted.end(),
                        [&](const auto& name) { return is_meant(contender, name); });
  });
}

}  // namespace nas
