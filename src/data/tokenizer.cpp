#include "data/tokenizer.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace nas {

Tokenizer::~Tokenizer() = default;

TokenizerRegistry& tokenizers() {
  static TokenizerRegistry registry("tokenizer");
  return registry;
}

std::vector<Setting> tokenizer_settings() {
  std::vector<Setting> all;
  for (const auto& key : tokenizers().keys()) {
    for (const auto& setting : tokenizers().at(key).description.settings) {
      const bool known = std::any_of(all.begin(), all.end(), [&setting](const Setting& one) {
        return one.name == setting.name;
      });
      if (!known) all.push_back(setting);
    }
  }
  return all;
}

std::string unit_of(const Parameters& settings) {
  if (settings.contains("tokenizer")) {
    if (const auto& tokenizer = settings.get<std::string>("tokenizer"); tokenizer != "unit") {
      return tokenizer;
    }
  }
  return settings.get<std::string>("unit");
}

nlohmann::json recorded_settings(const Parameters& settings) {
  nlohmann::json json = settings;
  if (!settings.contains("unit")) return json;
  json["unit"] = unit_of(settings);
  json.erase("tokenizer");
  for (const auto& setting : tokenizer_settings()) {
    if (settings.contains(setting.name) && settings.at(setting.name) == setting.default_value) {
      json.erase(setting.name);
    }
  }
  return json;
}

}  // namespace nas
