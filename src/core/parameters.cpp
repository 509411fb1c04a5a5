#include "core/parameters.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/format.hpp"

namespace nas {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool in_range(const Setting& setting, double value) {
  const bool above = setting.min_exclusive ? value > setting.min : value >= setting.min;
  const bool below = setting.max_exclusive ? value < setting.max : value <= setting.max;
  return above && below;
}

}  // namespace

std::string_view to_string(Effect effect) {
  constexpr std::array<std::string_view, 6> kNames{"result",    "search",  "limit",
                                                   "execution", "further", "none"};
  return kNames.at(static_cast<std::size_t>(effect));
}

std::string Setting::type_name() const {
  switch (default_value.index()) {
    case 0:
      return "true or false";
    case 1:
      return "integer";
    case 2:
      return "number";
    case 3:
      return "text";
    case 4:
      return "list of integers";
    case 5:
      return "list of texts";
    default:
      return "list of numbers";
  }
}

std::string Setting::allowed() const {
  if (!choices.empty()) return "one of " + join(choices) + (names_file ? ", or NAME.json" : "");
  const bool has_min = min != -kInfinity;
  const bool has_max = max != kInfinity;
  if (has_min && has_max) {
    return std::string("in ") + (min_exclusive ? "(" : "[") + shortest(min) + ", " + shortest(max) +
           (max_exclusive ? ")" : "]");
  }
  if (has_min) return std::string(min_exclusive ? "> " : ">= ") + shortest(min);
  if (has_max) return std::string(max_exclusive ? "< " : "<= ") + shortest(max);
  return "any " + type_name();
}

std::string Setting::violation(const Value& value) const {
  const auto refuse = [this] { return "must be " + allowed(); };
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    if (!in_range(*this, static_cast<double>(*integer))) return refuse();
  } else if (const auto* number = std::get_if<double>(&value)) {
    if (!in_range(*this, *number)) return refuse();
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    if (!choices.empty() && std::find(choices.begin(), choices.end(), *text) == choices.end() &&
        !(names_file && text->ends_with(".json"))) {
      return refuse() + did_you_mean(*text, choices);
    }
  } else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
    for (const auto item : *integers) {
      if (!in_range(*this, static_cast<double>(item))) return "every item " + refuse();
    }
  } else if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    for (const auto item : *numbers) {
      if (!in_range(*this, item)) return "every item " + refuse();
    }
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    for (const auto& item : *texts) {
      if (!choices.empty() && std::find(choices.begin(), choices.end(), item) == choices.end()) {
        return "every item " + refuse() + did_you_mean(item, choices);
      }
    }
  }
  return {};
}

std::string to_text(const Value& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>) {
          return v ? "true" : "false";
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          return std::to_string(v);
        } else if constexpr (std::is_same_v<T, double>) {
          return shortest(v);
        } else if constexpr (std::is_same_v<T, std::string>) {
          return v;
        } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
          std::vector<std::string> items;
          for (const auto item : v) items.push_back(std::to_string(item));
          return "[" + join(items) + "]";
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          std::vector<std::string> items;
          for (const auto item : v) items.push_back(shortest(item));
          return "[" + join(items) + "]";
        } else {
          return "[" + join(v) + "]";
        }
      },
      value);
}

Parameters::Parameters(const std::vector<Setting>& settings) {
  for (const auto& setting : settings) values_[setting.name] = setting.default_value;
}

const Value& Parameters::at(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    throw std::logic_error("no setting is declared under the name " + std::string(name));
  }
  return found->second;
}

void Parameters::wrong_type(std::string_view name) {
  throw std::logic_error("setting " + std::string(name) +
                         " is read with another type than declared");
}

void to_json(nlohmann::json& json, const Parameters& parameters) {
  json = nlohmann::json::object();
  for (const auto& [name, value] : parameters.values()) {
    std::visit([&json, &key = name](const auto& v) { json[key] = v; }, value);
  }
}

void from_json(const nlohmann::json& json, Parameters& parameters) {
  for (const auto& [name, item] : json.items()) {
    auto value = parameters.at(name);
    std::visit([&given = item](auto& v) { given.get_to(v); }, value);
    parameters.set(name, std::move(value));
  }
}

}  // namespace nas
