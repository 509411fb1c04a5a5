#include "core/field_differences.hpp"

#include <algorithm>
#include <cstddef>
#include <set>

namespace nas {

namespace {

using Json = nlohmann::json;

const Json* at(const Json& map, const std::string& key) {
  const auto found = map.find(key);
  return found != map.end() ? &*found : nullptr;
}

const Json* at(const Json& list, std::size_t i) { return i < list.size() ? &list.at(i) : nullptr; }

std::string text(const Json* value) { return value != nullptr ? value->dump() : "absent"; }

void append_differences(const Json* before, const Json* now, const std::string& path,
                        const FieldRules& rules, std::vector<std::string>& found) {
  const bool both = before != nullptr && now != nullptr;
  if (both && *before == *now) return;
  if (rules.ignores && rules.ignores(path, before, now)) return;
  const auto below = [&](const std::string& name, const Json* a, const Json* b) {
    append_differences(a, b, path.empty() ? name : path + "." + name, rules, found);
  };
  if (both && before->is_object() && now->is_object()) {
    std::set<std::string> keys;
    for (const auto* side : {before, now}) {
      for (const auto& item : side->items()) keys.insert(item.key());
    }
    for (const auto& key : keys) below(key, at(*before, key), at(*now, key));
  } else if (both && rules.elements && before->is_array() && now->is_array()) {
    for (std::size_t i = 0; i < std::max(before->size(), now->size()); ++i) {
      below(std::to_string(i), at(*before, i), at(*now, i));
    }
  } else {
    found.push_back(path + ": " + text(before) + " -> " + text(now));
  }
}

}  // namespace

std::vector<std::string> differences(const Json& before, const Json& now, const FieldRules& rules,
                                     const std::string& path) {
  std::vector<std::string> found;
  append_differences(&before, &now, path, rules, found);
  return found;
}

}  // namespace nas
