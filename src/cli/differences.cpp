#include <set>

#include "cli/experiment.hpp"

namespace nas {

namespace {

/// Appends the differences of two values to `keys`. Maps are compared key by key, lists as a whole.
void compare(const nlohmann::json* recorded, const nlohmann::json* given, const std::string& path,
             std::vector<std::string>& keys) {
  static const std::set<std::string> kWithoutEffect{"name",
                                                    "evaluation.workers",
                                                    "evaluation.device",
                                                    "evaluation.keep_models",
                                                    "training.checkpoint_minutes",
                                                    "budget",
                                                    "retest",
                                                    "baseline.tune"};
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

/// A baseline that was recorded as a text, in the form of today.
nlohmann::json with_baseline_section(nlohmann::json config) {
  const auto baseline = config.find("baseline");
  if (baseline != config.end() && baseline->is_string()) *baseline = {{"mechanism", *baseline}};
  return config;
}

}  // namespace

std::vector<std::string> differing_keys(const nlohmann::json& recorded,
                                        const nlohmann::json& given) {
  std::vector<std::string> keys;
  const auto before = with_baseline_section(recorded);
  const auto now = with_baseline_section(given);
  compare(&before, &now, "", keys);
  return keys;
}

}  // namespace nas
