#pragma once

#include <cstddef>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "report/digest.hpp"

namespace nas::test {

/// What a column of a block has of a record, see report/column_blocks.hpp.
inline nlohmann::json value_of(const nlohmann::json& column, std::size_t record) {
  if (column.is_array()) return column.at(record);
  if (column.contains("all")) return column["all"];
  auto value = column.at("each");
  for (auto& part : value) part = value_of(part, record);
  return value;
}

inline nlohmann::json records_of(const nlohmann::json& blocks) {
  auto records = nlohmann::json::array();
  for (const auto& block : blocks) {
    for (std::size_t i = 0; i < block.at("records").get<std::size_t>(); ++i) {
      auto& record = records.emplace_back(nlohmann::json::object());
      for (const auto& [key, column] : block.at("columns").items()) {
        record[key] = value_of(column, i);
      }
    }
  }
  return records;
}

/// A digest with records in the place of blocks, names and ids in the place of numbers, and its candidates by their names.
inline nlohmann::json read_digest(const std::string& text) {
  using Json = nlohmann::json;
  auto json = Json::parse(text);
  for (const auto* key :
       {"candidates", "evaluations", "paused", "ranking", "asks", "rung_asks", "rejected"}) {
    if (json.contains(key)) json[key] = records_of(json[key]);
  }
  const auto candidates = json["candidates"];
  auto evaluations = json["evaluations"];
  for (const auto& one : json.value("paused", Json::array())) evaluations.push_back(one);
  const auto id = [&](Json& number) { number = evaluations.at(number.get<std::size_t>())["id"]; };
  const auto name = [&](Json& record) {
    const auto& own = candidates.at(record["candidate"].get<std::size_t>());
    record["candidate"] = own["candidate"];
    if (!record.contains("genotype")) {
      record["mechanism"] = own["mechanism"].is_null() ? own["candidate"] : own["mechanism"];
    } else if (record["genotype"].is_null()) {
      record["genotype"] = own["candidate"];
    }
    if (record.contains("evaluation")) id(record["evaluation"]);
    if (record.contains("evaluations")) {
      for (auto& number : record["evaluations"]) id(number);
    }
  };
  for (auto* numbers : {&json["failures"], &json["outside_the_search"]["failures"]}) {
    for (auto& number : *numbers) {
      number = evaluations.at(number.get<std::size_t>());
      name(number);
    }
  }
  for (const auto* key :
       {"ranking", "rejected", "asks", "rung_asks", "evaluations", "paused", "controls"}) {
    if (!json.contains(key)) continue;
    for (auto& record : json[key]) name(record);
  }
  if (!json["baseline"].is_null()) name(json["baseline"]);
  for (auto& place : json["front"]) {
    const bool knee = place == json["knee"];
    place = json["ranking"].at(place.get<std::size_t>());
    place["knee"] = knee;
  }
  json["candidates"] = Json::object();
  for (const auto& own : candidates) {
    json["candidates"][own["candidate"].get_ref<const std::string&>()] = own;
  }
  return json;
}

/// The digest of a run, as read_digest() has it.
inline nlohmann::json results_json(const RunSummary& run) {
  std::ostringstream text;
  write_digest(run, text);
  return read_digest(text.str());
}

}  // namespace nas::test
