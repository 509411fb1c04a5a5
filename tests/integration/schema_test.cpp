// The JSON Schema of configurations, by which the shipped ones are right and their mutations wrong.

#include "cli/schema.hpp"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

namespace nas {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A YAML file as JSON, as YAML 1.2 reads it.
Json to_json(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map: {
      auto map = Json::object();
      for (const auto& entry : node) map[entry.first.as<std::string>()] = to_json(entry.second);
      return map;
    }
    case YAML::NodeType::Sequence: {
      auto list = Json::array();
      for (const auto& item : node) list.push_back(to_json(item));
      return list;
    }
    case YAML::NodeType::Scalar: {
      const auto text = node.as<std::string>();
      if (node.Tag() == "!") return text;  // quoted
      if (text == "true" || text == "false") return text == "true";
      if (double number = 0.0; YAML::convert<double>::decode(node, number)) return number;
      return text;
    }
    default:
      return nullptr;
  }
}

bool is_of_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "number") return value.is_number();
  if (type == "integer") {
    return value.is_number() && value.get<double>() == std::floor(value.get<double>());
  }
  throw std::logic_error("type " + type);
}

/// Whether a value is right by a schema: the keywords that schema_json() uses, no others.
bool is_valid(const Json& value, const Json& schema) {
  for (const auto& entry : schema.items()) {
    const auto& keyword = entry.key();
    const auto& rule = entry.value();
    if (keyword == "type") {
      const auto types = rule.is_array() ? rule : Json::array({rule});
      if (std::none_of(types.begin(), types.end(),
                       [&](const auto& type) { return is_of_type(value, type); })) {
        return false;
      }
    } else if (keyword == "enum") {
      if (std::find(rule.begin(), rule.end(), value) == rule.end()) return false;
    } else if (keyword == "const") {
      if (value != rule) return false;
    } else if (keyword == "anyOf") {
      if (std::none_of(rule.begin(), rule.end(),
                       [&](const auto& form) { return is_valid(value, form); })) {
        return false;
      }
    } else if (keyword == "items") {
      if (value.is_array() && !std::all_of(value.begin(), value.end(), [&](const auto& item) {
            return is_valid(item, rule);
          })) {
        return false;
      }
    } else if (keyword == "properties") {
      if (!value.is_object()) continue;
      for (const auto& [key, item] : value.items()) {
        if (rule.contains(key) && !is_valid(item, rule.at(key))) return false;
      }
    } else if (keyword == "additionalProperties") {
      if (!value.is_object()) continue;
      for (const auto& [key, item] : value.items()) {
        if (!schema.at("properties").contains(key)) return false;
      }
    } else if (keyword == "required") {
      if (!value.is_object()) continue;
      for (const auto& key : rule) {
        if (!value.contains(key)) return false;
      }
    } else if (keyword == "minimum" || keyword == "maximum") {
      if (!value.is_number()) continue;
      if (keyword == "minimum" ? value < rule : value > rule) return false;
    } else if (keyword == "exclusiveMinimum" || keyword == "exclusiveMaximum") {
      if (!value.is_number()) continue;
      if (keyword == "exclusiveMinimum" ? value <= rule : value >= rule) return false;
    } else if (keyword != "$schema" && keyword != "title" && keyword != "description" &&
               keyword != "default") {
      throw std::logic_error("keyword " + keyword);
    }
  }
  return true;
}

bool is_valid(const std::string& yaml) {
  return is_valid(to_json(YAML::Load(yaml)), schema_json());
}

TEST(Schema, EveryShippedConfigurationIsRight) {
  const auto schema = schema_json();
  int files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(NAS_SOURCE_DIR) / "configs")) {
    const auto configuration = YAML::LoadFile(entry.path().string());
    if (configuration["algorithms"]) continue;  // of nas-compare
    EXPECT_TRUE(is_valid(to_json(configuration), schema)) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 16);
}

TEST(Schema, MistakesAreWrong) {
  const std::vector<std::string> right{
      "seed: 3",
      "training: {steps: 5e3, learning_rate: 3e-4}",
      "model:",
      "algorithm: nsga2",
      "algorithm: {name: evo_ga, generations: 3, population: 8}",
      "algorithm: {generations: 3}",
      "data: {corpus: text_file, path: mytext.txt}",
      "evaluation: {workers: 3}",
      "space: {normalization: [softmax, entmax15], bias: true, attention_dropout: 0.1}",
      "space: {match_parameters: true}",
      "objectives: [perplexity, {name: latency, context: 64}]",
      "constraints: parameters <= 1e6",
      "baseline: {mechanism: dot|softmax|none|fixed|bias|0, tune: false}",
      "extends: [a.yaml, b.yaml]"};
  for (const auto& text : right) EXPECT_TRUE(is_valid(text)) << text;
  const std::vector<std::string> wrong{"sed: 3",
                                       "seed: -1",
                                       "seed: 1.5",
                                       "training: {steps: many}",
                                       "training: {step: 10}",
                                       "training: 3",
                                       "algorithm: nsga",
                                       "algorithm: {name: evo_ga, weights_of_ants: 3}",
                                       "algorithm: {name: nsga2, crossover: 1.4}",
                                       "data: {corpus: mytext.txt}",
                                       "data: {corpus: brown, path: mytext.txt}",
                                       "semantics: corect",
                                       "space: {normalization: [softmaxx]}",
                                       "space: {bias: yes_please}",
                                       "space: {match_parameters: 1}",
                                       "space: {attention_dropout: {min: 0.1, most: 0.2}}",
                                       "objectives: [{context: 64}]",
                                       "constraints: 3",
                                       "baseline: {tune: true}"};
  for (const auto& text : wrong) EXPECT_FALSE(is_valid(text)) << text;
}

}  // namespace
}  // namespace nas
