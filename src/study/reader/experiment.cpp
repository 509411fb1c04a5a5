#include "study/reader/experiment.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "config/document.hpp"
#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/format.hpp"
#include "core/installed.hpp"
#include "core/plugin.hpp"
#include "data/corpus.hpp"
#include "evaluation/settings.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/shorthand.hpp"
#include "search/algorithm.hpp"
#include "search/gene_place.hpp"
#include "search/problem.hpp"
#include "study/reader/engines.hpp"
#include "study/reader/fit.hpp"
#include "study/reader/objectives.hpp"
#include "study/reader/rates.hpp"
#include "study/reader/resolved.hpp"
#include "study/reader/rules.hpp"
#include "study/reader/space.hpp"

namespace nas {

namespace {

using Kind = DocumentNode::Kind;
using Integer = std::int64_t;
using Texts = std::vector<std::string>;

bool contains(const Texts& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

/// Reads a configuration section by section; mistakes collect in `diagnostics_`.
class Reader {
 public:
  Reader(const DocumentNode& document, Diagnostics& diagnostics)
      : document_(document), diagnostics_(diagnostics) {}

  Experiment read(const std::filesystem::path& file) {
    file_ = file.string();
    load_plugins();
    const auto mistakes_before = diagnostics_.size();
    experiment_.problem = read_plugin("problem", problems(), {}, experiment_.problem_settings);
    check_table();
    if (problems().contains(experiment_.problem)) {
      kind_ = problems().at(experiment_.problem).make();
    }
    read_top(file);
    experiment_.model = read_own("model", model_settings());
    experiment_.training = read_own("training", training_settings());
    read_space_section();
    frame_ = frame_of(experiment_);
    if (!has_sizes()) frame_.match_parameters = false;  // there is nothing to match
    check_space();
    check_idle();
    check_baseline();
    experiment_.evaluation = read_own("evaluation", evaluation_settings());
    experiment_.budget = read_own("budget", budget_settings());
    if (document_.find("fidelity") != nullptr)
      experiment_.fidelity = read_own("fidelity", fidelity_settings());
    experiment_.cluster = read_own("cluster", cluster_settings());
    experiment_.retest = read_own("retest", retest_settings());
    if (document_.find("retest") == nullptr && !listed())
      experiment_.retest.set("replicates", Integer{0});
    if (!reads("training")) experiment_.retest.set("tune", false);  // there are no rates
    if (reads("data")) {
      experiment_.corpus = read_plugin("data", corpora(), {}, experiment_.data);
    }
    experiment_.algorithm = read_plugin("algorithm", algorithms(), population_settings(),
                                        experiment_.algorithm_settings);
    const auto& algorithm = experiment_.algorithm_settings;
    experiment_.informed = algorithm.get<Texts>("informed");
    experiment_.informed_share = algorithm.get<double>("informed_share");
    noting_mistakes("objectives", [&] {
      const auto own = own_objectives();
      if (kind_.objectives && mistaken_.contains("problem")) return;  // which they are is not known
      experiment_.objectives = read_objectives(document_.find("objectives"),
                                               document_.find("constraints"), own, diagnostics_);
    });
    check_texts();
    if (reads("training")) fit_training();
    check_engine();
    note_distant_rungs();
    check_informed();
    check_mechanisms();
    take_rates();
    if (!listed()) fit_to_search();
    check_rules();
    if (listed()) fit_to_list();
    if (diagnostics_.size() == mistakes_before) {
      experiment_.resolved = resolved_configuration(experiment_, kind_.sections);
    }
    return experiment_;
  }

 private:
  /// What follows may name what these register, so that a mistake here ends the reading.
  void load_plugins() const {
    const auto* node = document_.find("plugins");
    if (node == nullptr) return;
    Diagnostics mistakes;
    Value files;
    if (read_value("plugins", *node, plugins_setting(), mistakes, files)) {
      for (const auto& item : node->as_list()) {
        try {
          (void)load_plugin(located_plugin(item.text, file_of(item.origin)),
                            PluginSource::configuration);
        } catch (const InputError& error) {
          mistakes.add(item.origin, "plugins: " + std::string(error.what()));
        }
      }
    }
    mistakes.throw_if_any();
  }

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
    Texts known = names_of(settings);
    known.insert(known.end(), {"baseline", "problem", "objectives", "constraints", "space", "model",
                               "data", "training", "evaluation", "budget", "fidelity", "algorithm",
                               "retest", "cluster"});
    check_keys("", document_, known, diagnostics_);
    for (const auto* section : {"semantics", "baseline", "space", "model", "data", "training"}) {
      if (document_.find(section) != nullptr && !reads(section)) refuse_section(section);
    }
    if (document_.find("controls") != nullptr && !reads("training")) refuse_section("controls");
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
    const auto& name = experiment_.name;
    if (name.find_first_of("/\n\t") != std::string::npos || name.front() == '.' ||
        printable(name) != name || name.size() > 200) {
      refuse("name", name,
             "must be the name of a folder: no '/', no '.' in front, all of it printable, at most "
             "200 bytes");
    }
    experiment_.seed = static_cast<std::uint64_t>(top.get<Integer>("seed"));
    experiment_.semantics = kind_.semantics ? decided_by_problem(kind_.semantics)
                                            : parse_semantics(top.get<std::string>("semantics"));
    experiment_.mechanisms = top.get<Texts>("mechanisms");
    experiment_.controls = top.get<bool>("controls");
    if (reads("baseline")) noting_mistakes("baseline", [this] { read_baseline(); });
  }

  /// A section that the problem has not. What the user's file extends is not the user's to change.
  void refuse_section(const std::string& section) {
    const auto origin = document_.origin_of(section);
    if (origin.line == 0 || origin.source == file_) {
      diagnostics_.add(
          origin, section + ": the problem " + experiment_.problem + " has none, must be left out");
    } else {
      refuse("problem.type", experiment_.problem,
             "must be one that takes " + section + ", which " + origin.text() + " has");
    }
  }

  /// Whether mechanisms are trained in place of a search.
  [[nodiscard]] bool listed() const { return !experiment_.mechanisms.empty(); }

  void read_baseline() {
    experiment_.baseline =
        read_section("baseline", document_.find("baseline"), baseline_settings(), diagnostics_)
            .get<std::string>("mechanism");
  }

  /// Whether the problem reads a section or key that not every problem has.
  [[nodiscard]] bool reads(const std::string& section) const {
    return contains(kind_.sections, section);
  }

  /// What the problem's own settings decide; their mistakes are the section's.
  template <class Result>
  Result decided_by_problem(const std::function<Result(const Parameters&)>& decide) {
    if (!decide || mistaken_.contains("problem")) return Result();
    try {
      return decide(experiment_.problem_settings);
    } catch (const InputError& error) {
      mistaken_.insert("problem");
      diagnostics_.add(document_.origin_of("problem"), error.what());
      return Result();
    }
  }

  std::vector<ChosenObjective> own_objectives() { return decided_by_problem(kind_.objectives); }

  void read_space_section() {
    noting_mistakes("space", [&] {
      const auto* node = document_.find("space");
      const auto layers = experiment_.model.get<Integer>("layers");
      experiment_.space = kind_.space
                              ? decided_by_problem(kind_.space)
                              : read_space(node, experiment_.semantics, layers, diagnostics_);
      if (!reads("space")) return;
      experiment_.match_parameters = read_space_setting("match_parameters", node, diagnostics_);
      const bool rates = !listed() && node != nullptr && node->find("training.learning_rate");
      if (reads("training") && read_space_setting("merge_section", node, diagnostics_))
        experiment_.section = genes_of(experiment_.training, rates);
    });
    if (!listed() && !mistaken_.contains("space") && !mistaken_.contains("problem") &&
        experiment_.space.num_varying() == 0) {
      diagnostics_.add(users_origin("space"),
                       "space: every gene has one value only, at least one must vary");
    }
  }

  /// What a space offers must be part of some model of these sizes.
  void check_space() {
    const auto& space = experiment_.space;
    if (!reads("space") || mistaken_.contains("space") || !has_sizes() || !is_wide(space)) return;
    noting_mistakes("space", [&] {
      const auto layers = experiment_.model.get<Integer>("layers");
      if (std::cmp_greater(period_of(space), layers)) {
        refuse("space.period", std::to_string(period_of(space)),
               "must be at most model.layers = " + std::to_string(layers));
        return;
      }
      // What the space fixes, then each option.
      if (const auto why = refusal_of(space, frame_); !why.empty()) {
        diagnostics_.add(users_origin("space"), "space: " + why);
        return;
      }
      for (const auto& gene : space.genes()) {
        for (const auto& option : gene.options) {
          const auto why = refusal_of(with_value(space, gene.name, option), frame_);
          if (why.empty()) continue;
          const auto slot = std::string(place_of(gene.name).slot);
          diagnostics_.add(document_.origin_of("space." + slot),
                           "space." + slot + " = " + option + ": " + why);
        }
      }
    });
  }

  /// What varies without making a difference is said, and alone is nothing to search.
  void check_idle() {
    const auto& space = experiment_.space;
    if (listed() || !reads("space") || mistaken_.contains("space")) return;
    const auto idle = idle_slots(space, experiment_.semantics);
    for (const auto& slot : idle) {
      experiment_.notes.push_back("space." + slot +
                                  ": its values make no difference beside anything else that the "
                                  "space offers");
    }
    const auto varies = [&idle](const Gene& gene) {
      return gene.varies() && !contains(idle, std::string(place_of(gene.name).slot));
    };
    if (idle.empty() || document_.origin.source == kRecordedConfiguration) return;
    const auto& genes = space.genes();
    if (std::none_of(genes.begin(), genes.end(), varies) &&
        std::any_of(genes.begin(), genes.end(), std::mem_fn(&Gene::varies))) {
      diagnostics_.add(users_origin("space"),
                       "space: no gene that has an effect has more than one value");
    }
  }

  /// Whether the section `model` has sizes that go together.
  [[nodiscard]] bool has_sizes() const {
    return !mistaken_.contains("model") && frame_.width % frame_.heads == 0;
  }

  /// The baseline that is named, or that of a wide space.
  void check_baseline() {
    if (!reads("baseline")) return;
    const auto* node = document_.find("baseline");
    const bool named = node != nullptr && node->find("mechanism") != nullptr;
    if (!named && reads("space") && !mistaken_.contains("space") && has_sizes() &&
        is_wide(experiment_.space)) {
      noting_mistakes("baseline", [&] { take_vanilla(); });
      return;
    }
    noting_mistakes("baseline", [&] {
      (void)read_model("baseline", experiment_.baseline, document_.origin_of("baseline.mechanism"));
    });
  }

  void take_vanilla() {
    try {
      experiment_.baseline = vanilla_of(experiment_.space, frame_);
    } catch (const InputError& error) {
      diagnostics_.add(users_origin("space"),
                       std::string("baseline: is missing, and there is no vanilla transformer of "
                                   "what the space fixes: ") +
                           error.what());
    }
  }

  Parameters read_own(const std::string& section, const std::vector<Setting>& settings) {
    Parameters parameters;
    noting_mistakes(section, [&] {
      parameters = read_section(section, document_.find(section), settings, diagnostics_);
    });
    return parameters;
  }

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
          diagnostics_.add(document_.origin_of(path),
                           path + ": " + registry.unknown(text) + own_text_hint(section, text));
        }
        // Nobody knows which of the other keys would be right.
        if (node != nullptr) {
          for (const auto& entry : node->entries) ignored.push_back(entry.key);
        }
      }
      parameters = read_section(section, node, settings, diagnostics_, ignored);
      for (const auto& one : settings) {
        if (!one.names_file || node == nullptr || node->find(one.name) == nullptr) continue;
        if (!one.choices.empty() && !parameters.get<std::string>(one.name).ends_with(".json"))
          continue;
        locate(section + "." + one.name, *node->find(one.name), one.name, parameters);
      }
    });
    return std::get<std::string>(key);
  }

  /// What to write where the path of a text stands in place of a corpus.
  static std::string own_text_hint(const std::string& section, const std::string& text) {
    if (section != "data" || text.find_first_of("./") == std::string::npos) return {};
    return "; for a text of your own: data: {corpus: text_file, path: " + text + "}";
  }

  /// A section's place in what the user gave: the file, else the command line.
  [[nodiscard]] Origin users_origin(const std::string& section) const {
    const auto* node = document_.find(section);
    if (node == nullptr) return document_.origin;
    if (node->origin.source == file_) return node->origin;
    for (const auto& entry : node->entries) {
      if (entry.value.origin.line == 0) return entry.value.origin;
    }
    return node->origin;
  }

  /// The file in which something is written, from which names in it count; empty: the command line.
  static std::string file_of(const Origin& origin) {
    return origin.line > 0 ? origin.source : std::string();
  }

  /// A file's name counts from the file that says it.
  void locate(const std::string& path, const DocumentNode& given, const std::string& setting,
              Parameters& parameters) {
    const auto& name = parameters.get<std::string>(setting);
    const auto file = located_file(name, file_of(given.origin));
    if (!is_utf8(file)) {  // a folder of the file that says it, which no record could hold
      diagnostics_.add(given.origin,
                       path + " = " + name + ", found as " + file + ", must have a path in UTF-8");
    }
    parameters.set(setting, file);
  }

  /// What is said of a file that is none of what it must be.
  [[nodiscard]] static std::string not_found(const std::string& what, const std::string& name,
                                             const Origin& origin) {
    if (const auto kind = other_kind(name); !kind.empty()) {
      return "must be " + what + ", is " + kind;
    }
    return "must be " + what + ", there is none" + places_of_file(name, file_of(origin));
  }

  void refuse(const std::string& path, const std::string& value, const std::string& message) {
    diagnostics_.add(document_.origin_of(path), path + " = " + value + ", " + message);
  }

  /// What a name is read beside: the baseline; of that, or where it is mistaken, the vanilla model.
  [[nodiscard]] Architecture base_of(const std::string& path) const {
    const bool known = path != "baseline" && !mistaken_.contains("baseline");
    if (known) return parse_model(experiment_.baseline, frame_);
    const bool wide = reads("space") && !mistaken_.contains("space") && is_wide(experiment_.space);
    return wide ? parse_model(vanilla_of(experiment_.space, frame_), frame_)
                : vanilla_architecture(frame_);
  }

  /// @param name  what is read beside another model becomes the name that it stands for.
  std::optional<Architecture> read_model(const std::string& path, std::string& name,
                                         const Origin& origin) {
    try {
      // A record's names are full, and so is that of a baseline, which is beside none.
      const bool layered = path != "baseline" && full_name(name) != name;
      const bool beside = has_sizes() && origin.source != kRecordedConfiguration &&
                          (layered || is_shorthand(name, frame_));
      auto architecture =
          beside ? named_model(name, frame_, base_of(path)) : parse_model(name, frame_);
      require_built(architecture);
      if (has_sizes()) require_layers(name, architecture, frame_.layers);
      if (beside) name = to_string(canonical(architecture));
      // Wrong sizes are a mistake of the section `model`.
      if (has_sizes()) (void)canonical(architecture);
      return architecture;
    } catch (const InputError& error) {
      diagnostics_.add(origin, path + ": " + error.what());
      return std::nullopt;
    }
  }

  /// A table is looked for before it is asked what its problem is.
  void check_table() {
    if (mistaken_.contains("problem") || !experiment_.problem_settings.contains("table")) return;
    noting_mistakes("problem", [this] {
      const auto& table = experiment_.problem_settings.get<std::string>("table");
      if (std::filesystem::is_regular_file(table)) return;
      refuse("problem.table", table,
             not_found("a table", table, document_.origin_of("problem.table")));
    });
  }

  /// The user's own texts are looked for now, as long as it is known where they are named.
  void check_texts() {
    if (experiment_.corpus != "text_file" || mistaken_.contains("data")) return;
    for (const auto* name : {"path", "train", "valid", "test"}) {
      const auto& path = experiment_.data.get<std::string>(name);
      if (path.empty() || std::filesystem::is_regular_file(path)) continue;
      refuse("data." + std::string(name), path,
             not_found("a text file", path, document_.origin_of(std::string("data.") + name)));
    }
  }

  void check_rules() {
    const RuleFacts facts{
        .experiment = experiment_, .sections = kind_.sections, .mistaken = mistaken_};
    for (const auto& breach : breaches(RuleStage::configuration, facts)) {
      diagnostics_.add(document_.origin_of(breach.setting), breach.text());
    }
    for (auto& note : without_effect(facts)) experiment_.notes.push_back(std::move(note));
  }

  void fit_training() {
    const auto steps = experiment_.training.get<Integer>("steps");
    if (!mistaken_.contains("training")) fit_warmup(steps);
    fit_checkpoints(steps);
  }

  /// Validations beyond the last step are left out, and without any before it nobody is stopped early: both are said.
  void fit_checkpoints(Integer steps) {
    auto checkpoints = experiment_.training.get<std::vector<Integer>>("checkpoints");
    if (std::erase_if(checkpoints, [steps](Integer step) { return step > steps; }) > 0) {
      experiment_.notes.push_back("training.checkpoints beyond training.steps = " +
                                  std::to_string(steps) + " are left out");
    }
    experiment_.training.set("checkpoints", checkpoints);
    const auto early = experiment_.training.get<Integer>("early_stop_after");
    if (early == 0 || listed() || mistaken_.contains("training")) return;
    if (std::none_of(checkpoints.begin(), checkpoints.end(),
                     [&](Integer step) { return step >= early && step < steps; })) {
      experiment_.notes.push_back("training.early_stop_after = " + std::to_string(early) +
                                  " stops no candidate: training.checkpoints has no step from "
                                  "there on before the last one");
    }
  }

  /// A warm-up that is longer than the training run is a mistake where both are written in one
  /// place. Where the steps of a longer run were overridden, it becomes a tenth of them.
  void fit_warmup(Integer steps) {
    const auto warmup = experiment_.training.get<Integer>("warmup_steps");
    if (warmup <= steps) return;
    if (document_.origin_of("training.steps").source ==
        document_.origin_of("training.warmup_steps").source) {
      refuse("training.warmup_steps", std::to_string(warmup),
             "must be <= training.steps = " + std::to_string(steps));
      return;
    }
    const auto shorter = steps / 10;
    experiment_.training.set("warmup_steps", shorter);
    experiment_.notes.push_back("training.warmup_steps = " + std::to_string(warmup) +
                                " is shortened to " + std::to_string(shorter) +
                                ", a tenth of training.steps = " + std::to_string(steps));
  }

  void check_engine() {
    const auto& engine = experiment_.cluster.get<std::string>("engine");
    if (engine.empty() || mistaken_.contains("cluster")) return;
    try {
      (void)find_engine(engine);
    } catch (const InputError& error) {
      diagnostics_.add(document_.origin_of("cluster.engine"),
                       std::string("cluster.engine: ") + error.what());
    }
  }

  void note_distant_rungs() {
    if (!experiment_.fidelity || mistaken_.contains("fidelity") || listed()) return;
    auto steps = experiment_.fidelity->get<std::vector<Integer>>("rungs");
    if (reads("training")) steps.push_back(experiment_.training.get<Integer>("steps"));
    for (std::size_t i = 1; i < steps.size(); ++i) {
      if (steps[i] <= 4 * steps[i - 1]) continue;
      experiment_.notes.push_back("fidelity: steps " + std::to_string(steps[i - 1]) + " and " +
                                  std::to_string(steps[i]) +
                                  " are more than 4 times apart: what is best at the first may not "
                                  "be at the second");
    }
  }

  /// Listed mechanisms are models of the section `model`, none of them twice, none the baseline.
  void check_mechanisms() {
    if (!listed() || !reads("training")) return;
    std::map<std::string, std::string> known;  // what was given, by canonical name
    if (has_sizes() && !mistaken_.contains("baseline")) {
      const auto baseline = to_string(canonical(parse_model(experiment_.baseline, frame_)));
      known.emplace(baseline, "the baseline");
    }
    const auto items = document_.find("mechanisms")->as_list();
    for (std::size_t i = 0; i < items.size(); ++i) {
      auto& name = experiment_.mechanisms[i];
      auto given = name;
      const auto architecture = read_model("mechanisms", name, items[i].origin);
      if (!architecture || !has_sizes()) continue;
      name = to_string(canonical(*architecture));
      const auto [same, fresh] = known.try_emplace(name, given);
      if (fresh) continue;
      const auto why = same->second == given ? ", is given twice"
                                             : ", must be left out: in effect it is " +
                                                   same->second + ", which is trained anyway";
      diagnostics_.add(items[i].origin, "mechanisms = " + given + why);
    }
  }

  void take_rates() {
    const auto* list = document_.find("rates");
    if (list == nullptr || !reads("training")) return;
    const auto* training = document_.find("training");
    const bool other = training != nullptr && is_on_command_line(training->find("learning_rate"));
    if (other && !is_on_command_line(list)) {
      return experiment_.notes.push_back(
          "rates is left out, since training.learning_rate is given");
    }
    const auto canonical_name = [this](std::string name, const Origin& origin) {
      const auto model = read_model("rates", name, origin);
      return model && has_sizes() ? std::optional(to_string(canonical(*model))) : std::nullopt;
    };
    experiment_.rates = read_rates(*list, canonical_name, diagnostics_);
  }

  /// What a search alone needs is left out, and what would keep a training run from its end.
  void fit_to_list() {
    const auto leave_out = [this](const std::string& setting) {
      experiment_.notes.push_back(setting + " is left out, since mechanisms are listed");
    };
    experiment_.space = SearchSpace();
    if (!reads("training")) return;
    auto& training = experiment_.training;
    if (training.get<Integer>("early_stop_after") > 0) leave_out("training.early_stop_after");
    training.set("early_stop_after", Integer{0});
    training.set("score_test", true);
    // Of the space the baseline may come, and match_parameters.
    for (const auto& section : sections_of_search()) {
      if (is_on_command_line(document_.find(section))) leave_out(section);
    }
    for (const auto& setting : names_of(evaluation_settings(), Effect::search)) {
      const auto* evaluation = document_.find("evaluation");
      if (evaluation != nullptr && is_on_command_line(evaluation->find(setting))) {
        leave_out("evaluation." + setting);
      }
    }
  }

  /// Whether the command line says something, or a part of it: whoever says it wants it, as not
  /// everybody wants all of a file that others use, too.
  static bool is_on_command_line(const DocumentNode* node) {
    if (node == nullptr) return false;
    return node->origin.line == 0 ||
           std::any_of(node->entries.begin(), node->entries.end(),
                       [](const auto& entry) { return entry.value.origin.line == 0; });
  }

  void fit_to_search() {
    if (mistaken_.contains("algorithm") || mistaken_.contains("space") ||
        mistaken_.contains("problem") || mistaken_.contains("objectives")) {
      return;
    }
    const auto& settings = experiment_.algorithm_settings;
    for (const auto& [setting, message] : fit_algorithm(experiment_)) {
      refuse("algorithm." + setting,
             setting == "name" ? experiment_.algorithm
                               : to_text(settings.values().find(setting)->second),
             message);
    }
  }

  void check_informed() {
    auto& informed = experiment_.informed;
    if (mistaken_.contains("algorithm") || mistaken_.contains("space") || !has_sizes()) return;
    if (informed.empty() || !reads("baseline")) return;
    const auto items = document_.find("algorithm")->find("informed")->as_list();
    for (std::size_t i = 0; i < informed.size(); ++i) {
      const auto architecture = read_model("algorithm.informed", informed[i], items[i].origin);
      if (!architecture) continue;
      try {
        note_rounding(informed[i], genotype_in(experiment_.space, *architecture, frame_));
      } catch (const InputError& error) {
        diagnostics_.add(items[i].origin,
                         "algorithm.informed = " + informed[i] + ", " + error.what());
      }
    }
  }

  /// Says where the decimals of the space make another mechanism of one that is given.
  void note_rounding(const std::string& given, const Genotype& genotype) {
    const auto name = [this](const Genotype& one) {
      return to_string(canonical(architecture_of(one, frame_)));
    };
    const auto taken = name(experiment_.space.decode(experiment_.space.encode(genotype)));
    if (taken == name(genotype)) return;
    experiment_.notes.push_back("algorithm.informed = " + given + " is taken as " + taken +
                                ", by the decimals of the space");
  }

  const DocumentNode& document_;
  std::string file_;  ///< as the origins of what it says name it
  Diagnostics& diagnostics_;
  std::set<std::string> mistaken_;  ///< sections in which there are mistakes
  ProblemKind kind_;
  Experiment experiment_;
  Architecture frame_;  ///< of the models that are searched
};

}  // namespace

const PluginSections& plugin_sections() {
  static const PluginSections kSections{
      {"problem", {.key = "type", .plugin = "attention_search"}},
      // A mechanism is no plug-in, but a text may stand for it as for one.
      {"baseline",
       {.key = "mechanism",
        .plugin = std::get<std::string>(baseline_settings().front().default_value)}},
      {"data", {.key = "corpus", .plugin = "wikitext-2"}},
      {"algorithm",
       {.key = "name", .plugin = "evo_ga", .shared = names_of(population_settings())}}};
  return kSections;
}

Experiment load_experiment(const std::filesystem::path& file,
                           const std::vector<std::string>& overrides, Diagnostics& mistakes) {
  const auto found = find_configuration(file);
  const auto document = load_document(found, overrides, plugin_sections());
  if (const auto* several = document.find("algorithms")) {
    throw InputError(several->origin.text() +
                     ": algorithms: a search has one, under the key algorithm; nas-compare "
                     "compares several");
  }
  return read_experiment(document, found, mistakes);
}

Experiment load_experiment(const std::filesystem::path& file,
                           const std::vector<std::string>& overrides) {
  Diagnostics diagnostics;
  auto experiment = load_experiment(file, overrides, diagnostics);
  diagnostics.throw_if_any();
  return experiment;
}

Experiment read_experiment(const DocumentNode& document, const std::filesystem::path& file,
                           Diagnostics& diagnostics) {
  return Reader(document, diagnostics).read(file);
}

}  // namespace nas
