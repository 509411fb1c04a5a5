#include "evaluation/measurement.hpp"

#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "core/hash.hpp"

namespace nas {

std::vector<std::vector<std::size_t>> Measurement::alike(std::span<const Assignment> tasks) const {
  std::vector<std::size_t> all(tasks.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return {all};
}

Task make_task(const Measurement& measurement, const Candidate& candidate, std::int64_t replicate) {
  Task task{.candidate = candidate, .replicate = replicate, .id = {}, .identity = {}};
  task.identity = measurement.identity();
  task.identity["candidate"] = candidate.name;
  task.identity["replicate"] = replicate;
  task.id = sha256(task.identity.dump());
  return task;
}

void screen(Measurement& measurement, const Task& task, Evaluation& evaluation) {
  if (task.candidate.refusal.empty()) return measurement.screen(task, evaluation);
  evaluation.status = Status::rejected;
  evaluation.reason = "no such model: " + task.candidate.refusal;
}

nlohmann::json task_json(const Task& task) {
  return {{"id", task.id},
          {"candidate", task.candidate.name},
          {"replicate", task.replicate},
          {"identity", task.identity}};
}

Task read_task(const nlohmann::json& json, const Measurement& measurement) {
  const auto id = json.at("id").get<std::string>();
  const auto refuse = [&id](const std::string& what, const nlohmann::json& given,
                            const nlohmann::json& here) {
    throw InputError("task " + id + ": " + what + " = " + given.dump() + ", must be " +
                     here.dump() + " to be measured here");
  };
  const auto name = json.at("candidate").get<std::string>();
  auto candidate = measurement.parse(name);
  if (candidate.name != name) refuse("candidate", name, candidate.name);
  auto task = make_task(measurement, candidate, json.at("replicate"));
  const auto& identity = json.at("identity");
  for (const auto* own : {"training", "stop_above_nll"}) {
    task.identity.erase(own);
    if (const auto found = identity.find(own); found != identity.end()) {
      task.identity[own] = *found;
    }
  }
  for (const auto* either : {&identity, &std::as_const(task.identity)}) {
    for (const auto& [key, value] : either->items()) {
      const auto given = identity.value(key, nlohmann::json());
      const auto here = task.identity.value(key, nlohmann::json());
      if (given != here) refuse("identity." + key, given, here);
    }
  }
  task.id = sha256(task.identity.dump());
  if (task.id != id) refuse("id", id, task.id);
  return task;
}

}  // namespace nas
