#include "search/measured_by.hpp"

#include <algorithm>
#include <vector>

#include "core/error.hpp"

namespace nas {

std::string not_measured(const nlohmann::json& facts, const std::string& value) {
  const auto task = facts.find("task");
  if (task == facts.end()) return {};
  std::vector<std::string> values;
  for (const auto& one : task->at("values")) values.push_back(one.at("name"));
  if (std::find(values.begin(), values.end(), value) != values.end()) return {};
  return "the task " + task->at("name").get<std::string>() + " of the corpus " +
         facts.value("corpus", "") + " measures " + join(values);
}

}  // namespace nas
