#include "study/reader/objectives.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/setting_forms.hpp"
#include "evaluation/settings.hpp"

namespace nas {

namespace {

using Kind = DocumentNode::Kind;
using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

/// Whether a text is a word for constraints, columns and tables.
bool is_name(const std::string& text) {
  const auto letter = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return std::isalpha(byte) != 0 || byte == '_' || byte >= 0x80;
  };
  return !text.empty() && text.size() <= 64 && letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [&letter](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '-'; });
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

/// A number, which a prefix of the SI or of IEC 80000-13 may follow: 1.7M, 512 Ki.
std::optional<double> amount_in(const std::string& text) {
  static const std::map<std::string, double> kPrefixes{
      {"", 1.0},   {"k", 1e3},     {"M", 1e6},        {"G", 1e9},
      {"T", 1e12}, {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}};
  const auto letters = std::min(text.find_first_of("kMGTK"), text.size());
  const auto number = number_in(trimmed(text.substr(0, letters)));
  const auto prefix = kPrefixes.find(text.substr(letters));
  if (!number || prefix == kPrefixes.end()) return std::nullopt;
  const double value = *number * prefix->second;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// Whether the columns that are made for one objective are named as the other.
bool has_column_of(const std::string& name, const std::string& other) {
  return other == "fitness_" + name || other == name + "_mean" || other == name + "_low" ||
         other == name + "_high" || other == name + "_standard_error";
}

class ObjectivesReader {
 public:
  ObjectivesReader(const std::vector<ChosenObjective>& own, Diagnostics& diagnostics)
      : own_(own), diagnostics_(diagnostics) {}

  void read_objectives(const DocumentNode* node, ObjectiveSet& set) {
    if (node == nullptr) {
      set.objectives = own_;
      if (own_.empty()) set.objectives.push_back(with_defaults("perplexity"));
      return;
    }
    if (node->kind == Kind::null || node->kind == Kind::map || node->as_list().empty()) {
      diagnostics_.add(node->origin, "objectives = " + node->summary() +
                                         ", must be a list of at least one of " + join(known()));
      return;
    }
    for (const auto& item : node->as_list()) {
      auto objective = read_item(item);
      if (!objective) continue;
      if (const auto clash = clash_in(set, objective->name); !clash.empty()) {
        diagnostics_.add(item.origin, "objectives: " + clash + ", must be distinguished by `as`");
        continue;
      }
      set.objectives.push_back(std::move(*objective));
    }
  }

  void read_constraints(const DocumentNode* node, ObjectiveSet& set) {
    if (node == nullptr || node->kind == Kind::null) return;
    for (const auto& item : node->as_list()) {
      if (auto constraint = read_constraint(item, set)) {
        set.constraints.push_back(std::move(*constraint));
      }
    }
  }

 private:
  /// Why an objective cannot have a name beside those before it; empty if it can.
  static std::string clash_in(const ObjectiveSet& set, const std::string& name) {
    for (const auto& other : set.objectives) {
      if (other.name == name) return name + " is given twice";
      if (has_column_of(name, other.name) || has_column_of(other.name, name)) {
        return other.name + " and " + name + " have a column of one name";
      }
    }
    return {};
  }

  /// Why a quantity cannot have the name that `as` gives it; empty if it can.
  [[nodiscard]] std::string refusal(const std::string& name, const std::string& key) const {
    if (name == key) return {};
    if (!is_name(name)) {
      return "must begin with a letter and have letters, digits, '_' and '-' only, at most 64 "
             "bytes";
    }
    if (exists(name) || objectives().contains(name)) {
      return "must be another name: it is that of another objective";
    }
    return is_recorded_name(name) ? "must be another name: " + std::string(kRecorded) : "";
  }

  static constexpr const char* kRecorded = "runs record something else under it, see docs/files.md";

  [[nodiscard]] Texts known() const {
    if (own_.empty()) return objectives().keys();
    Texts names;
    for (const auto& objective : own_) names.push_back(objective.name);
    return names;
  }

  [[nodiscard]] bool exists(const std::string& key) const {
    const auto keys = known();
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  }

  [[nodiscard]] std::string unknown(const std::string& key) const {
    const std::string hint = did_you_mean(key, known());
    return "unknown objective '" + key + "', known: " + join(known()) +
           (key.find(',') == std::string::npos ? hint : "; several must be a list: [" + key + "]");
  }

  /// Why there can be no quantity of a key; empty if there can.
  [[nodiscard]] std::string refusal_of(const std::string& key) const {
    if (!exists(key)) return unknown(key);
    if (!own_.empty() || !is_recorded_name(key)) return {};
    return "the objective " + key + ", of " + objectives().at(key).description.file +
           ", must have another key: " + kRecorded;
  }

  [[nodiscard]] std::vector<Setting> own_settings(const std::string& key) const {
    return own_.empty() ? objectives().at(key).description.settings : std::vector<Setting>{};
  }

  [[nodiscard]] ChosenObjective make(const std::string& key, const Parameters& settings) const {
    for (const auto& objective : own_) {
      if (objective.key == key) return objective;
    }
    ChosenObjective chosen{.name = key,
                           .key = key,
                           .settings = settings,
                           .objective = objectives().at(key).make(settings)};
    chosen.maximise = chosen.objective.maximise;
    return chosen;
  }

  [[nodiscard]] ChosenObjective with_defaults(const std::string& key) const {
    return make(key, Parameters(own_settings(key)));
  }

  std::optional<ChosenObjective> read_item(const DocumentNode& item) {
    const auto* named = item.kind == Kind::map ? item.find("name") : &item;
    if (named == nullptr || named->kind != Kind::scalar) {
      diagnostics_.add(item.origin, "objectives = " + item.summary() +
                                        ", every item must be a name or a map with a name");
      return std::nullopt;
    }
    const auto& key = named->text;
    if (const auto why = refusal_of(key); !why.empty()) {
      diagnostics_.add(named->origin, "objectives: " + why);
      return std::nullopt;
    }
    if (item.kind != Kind::map) return with_defaults(key);

    const std::string path = "objectives." + key;
    auto settings = own_settings(key);
    const auto own_names = settings;
    for (const auto& setting : objective_settings()) settings.push_back(setting);
    const auto before = diagnostics_.size();
    const auto given = read_section(path, &item, settings, diagnostics_, {"name"});
    if (diagnostics_.size() != before) return std::nullopt;
    Parameters own;
    for (const auto& setting : own_names) own.set(setting.name, given.values().at(setting.name));
    auto objective = make(key, own);
    if (item.find("as") != nullptr) objective.name = given.get<std::string>("as");
    if (const auto why = refusal(objective.name, key); !why.empty()) {
      diagnostics_.add(item.find("as")->origin, path + ".as = " + objective.name + ", " + why);
      return std::nullopt;
    }
    const auto& goal = given.get<std::string>("goal");
    if (goal != "natural") objective.maximise = goal == "maximise";
    if (const auto& range = given.get<Numbers>("range"); !range.empty()) {
      const bool falls = objective.maximise;
      if (range.size() != 2 || (falls ? range[0] <= range[1] : range[0] >= range[1])) {
        diagnostics_.add(item.find("range")->origin,
                         path + ".range = " + item.find("range")->summary() +
                             ", must be [best, worst], the best " + (falls ? "larger" : "smaller") +
                             " since it is " + (falls ? "maximised" : "minimised"));
        return std::nullopt;
      }
      objective.range = Range{.best = range[0], .worst = range[1]};
    }
    return objective;
  }

  std::optional<Constraint> read_constraint(const DocumentNode& item, const ObjectiveSet& set) {
    const auto refuse = [&](const std::string& message) -> std::optional<Constraint> {
      diagnostics_.add(item.origin, "constraints = " + item.summary() + ", " + message);
      return std::nullopt;
    };
    const auto text = item.kind == Kind::scalar ? item.text : std::string();
    const auto sign = text.find_first_of("<>");
    const auto comparison = sign == std::string::npos ? std::string() : text.substr(sign, 2);
    const auto name = trimmed(text.substr(0, sign));
    const auto value =
        comparison.empty() ? std::nullopt : amount_in(trimmed(text.substr(sign + 2)));
    if (name.empty() || (comparison != "<=" && comparison != ">=") || !value) {
      return refuse(
          "must be of the form NAME <= NUMBER or NAME >= NUMBER; k, M, G, T, Ki, Mi and Gi may "
          "follow the number");
    }
    const auto chosen =
        std::find_if(set.objectives.begin(), set.objectives.end(),
                     [&name](const ChosenObjective& objective) { return objective.name == name; });
    if (chosen == set.objectives.end()) {
      if (const auto why = refusal_of(name); !why.empty()) return refuse(why);
    }
    Constraint constraint{
        .quantity = chosen != set.objectives.end() ? *chosen : with_defaults(name),
        .at_most = comparison == "<=",
        .bound = *value};
    return constraint;
  }

  const std::vector<ChosenObjective>& own_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::vector<Setting> objective_settings() {
  return with_effect(
      Effect::search,
      {
          setting::text(
              "as", "",
              "name within the experiment, of letters, digits, '_' and '-' and none that a run "
              "records anything else under; not given: the objective's"),
          setting::choice("goal", "natural", {"natural", "minimise", "maximise"},
                          "natural: the objective's own sense; else the sense that it has here"),
          setting::any(
              "range", Numbers{},
              "[best, worst] value to expect, which scales it for hypervolume and decomposition; "
              "empty: the objective's own"),
      });
}

ObjectiveSet read_objectives(const DocumentNode* objectives, const DocumentNode* constraints,
                             const std::vector<ChosenObjective>& own, Diagnostics& diagnostics) {
  ObjectiveSet set;
  ObjectivesReader reader(own, diagnostics);
  reader.read_objectives(objectives, set);
  reader.read_constraints(constraints, set);
  return set;
}

nlohmann::json resolved_objectives(const ObjectiveSet& set) {
  auto list = nlohmann::json::array();
  for (const auto& objective : set.objectives) {
    nlohmann::json item = objective.settings;
    item["name"] = objective.key;
    item["as"] = objective.name;
    item["goal"] = objective.maximise ? "maximise" : "minimise";
    item["range"] = nlohmann::json::array();
    if (objective.range) item["range"] = {objective.range->best, objective.range->worst};
    list.push_back(std::move(item));
  }
  return list;
}

nlohmann::json resolved_constraints(const ObjectiveSet& set) {
  auto list = nlohmann::json::array();
  for (const auto& constraint : set.constraints) list.push_back(constraint.text());
  return list;
}

}  // namespace nas
