#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json.hpp>

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

/// The text of a digest of version 4 as results_json() has it: with names in the place of numbers.
/// Its labels and what it says of models are those of its candidates.
inline nlohmann::json read_digest(const std::string& text) {
  using Json = nlohmann::json;
  auto json = Json::parse(text);
  for (const auto* key :
       {"candidates", "evaluations", "paused", "ranking", "asks", "rung_asks", "rejected"}) {
    if (json.contains(key)) json[key] = records_of(json[key]);
  }
  auto evaluations = json["evaluations"];
  for (const auto& one : json.value("paused", Json::array())) evaluations.push_back(one);
  const auto known = json["candidates"];
  const auto evaluation = [&](const Json& n) -> const Json& {
    return evaluations.at(n.get<std::size_t>());
  };
  const auto candidate = [&](const Json& n) -> const Json& {
    return known.at(n.get<std::size_t>());
  };
  const auto mechanism = [&](const Json& n) {
    const auto& own = candidate(n);
    return own["mechanism"].is_null() ? own["candidate"] : own["mechanism"];
  };
  auto front = Json::array();
  for (const auto* key : {"ranking", "rejected", "asks", "rung_asks", "evaluations", "paused"}) {
    if (!json.contains(key)) continue;
    for (auto& record : json[key]) {
      const auto place = record["candidate"];
      record["candidate"] = candidate(place)["candidate"];
      if (record.contains("genotype") && record["genotype"].is_null()) {
        record["genotype"] = record["candidate"];
      }
      if (key == std::string("ranking") || key == std::string("rejected")) {
        record["mechanism"] = mechanism(place);
      }
      if (record.contains("evaluation"))
        record["evaluation"] = evaluation(record["evaluation"])["id"];
      if (!record.contains("evaluations")) continue;
      for (auto& n : record["evaluations"]) n = evaluation(n)["id"];
    }
  }
  for (const auto& n : json["front"]) {
    auto record = json["ranking"].at(n.get<std::size_t>());
    for (const auto* key : {"on_front", "replicates", "first_ask", "times_asked", "facts"}) {
      record.erase(key);
    }
    record["knee"] = json["knee"] == n;
    front.push_back(record);
  }
  json["front"] = front;
  for (auto& n : json["failures"]) {
    const auto own = evaluation(n);
    n = {{"mechanism", mechanism(own["candidate"])},
         {"status", own["status"]},
         {"reason", own["reason"]},
         {"evaluation", own["id"]}};
  }
  auto labels = Json::object();
  auto truth = Json();
  if (json["models"].is_object()) {
    json["models"].update({{"choices", Json::object()}, {"differences", Json::object()}});
  }
  for (const auto& own : known) {
    const auto& name = own["candidate"].get_ref<const std::string&>();
    if (!own["mechanism"].is_null()) labels[name] = own["mechanism"];
    if (!own["truth"].is_null()) truth[name] = own["truth"];
    if (own.contains("choices") && !own["choices"].is_null()) {
      json["models"]["choices"][name] = own["choices"];
    }
    if (own.contains("difference") && !own["difference"].is_null()) {
      json["models"]["differences"][name] = own["difference"];
    }
  }
  json.update({{"labels", labels}, {"truth", truth}, {"schema", 3}});
  json.erase("candidates");
  json.erase("knee");
  return json;
}

}  // namespace nas::test
