#include "evaluation/measurement.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

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

Evaluation unmeasured(const Task& task) {
  Evaluation evaluation;
  evaluation.id = task.id;
  evaluation.candidate = task.candidate.name;
  evaluation.replicate = task.replicate;
  evaluation.identity = task.identity;
  evaluation.measured = nlohmann::json::object();
  return evaluation;
}

void screen(Measurement& measurement, const Task& task, Evaluation& evaluation) {
  if (task.candidate.refusal.empty()) return measurement.screen(task, evaluation);
  evaluation.status = Status::rejected;
  evaluation.reason = "no such model: " + task.candidate.refusal;
}

nlohmann::json task_json(const Task& task) {
  nlohmann::json json{{"id", task.id},
                      {"candidate", task.candidate.name},
                      {"replicate", task.replicate},
                      {"identity", task.identity}};
  if (task.until > 0) json["until"] = task.until;
  return json;
}

namespace {

/// What a task says of its own training.
constexpr std::array<std::string_view, 2> kOfTraining{"training", "stop_above_nll"};

[[noreturn]] void refuse(const std::string& what, const nlohmann::json& given,
                         const nlohmann::json& here) {
  throw InputError(what + " = " + given.dump() + ", must be " + here.dump() +
                   " to be measured here");
}

}  // namespace

void require_identity(const nlohmann::json& given, const nlohmann::json& here,
                      const std::string& whose) {
  for (const auto* either : {&given, &here}) {
    for (const auto& [key, value] : either->items()) {
      if (std::find(kOfTraining.begin(), kOfTraining.end(), key) != kOfTraining.end()) continue;
      const auto there = given.value(key, nlohmann::json());
      const auto own = here.value(key, nlohmann::json());
      if (there != own) refuse(whose + "identity." + key, there, own);
    }
  }
}

Task read_task(const nlohmann::json& json, const Measurement& measurement) {
  const auto id = json.at("id").get<std::string>();
  const auto whose = "task " + id + ": ";
  const auto name = json.at("candidate").get<std::string>();
  auto candidate = measurement.parse(name);
  if (candidate.name != name) refuse(whose + "candidate", name, candidate.name);
  auto task = make_task(measurement, candidate, json.at("replicate"));
  task.until = json.value("until", std::int64_t{0});
  const auto rungs = measurement.rungs();
  if (task.until != 0 && !std::binary_search(rungs.begin(), rungs.end(), task.until)) {
    refuse(whose + "until", task.until, rungs);
  }
  const auto& identity = json.at("identity");
  require_identity(identity, task.identity, whose);
  for (const auto key : kOfTraining) {
    const std::string own(key);
    task.identity.erase(own);
    if (const auto found = identity.find(own); found != identity.end()) {
      task.identity[own] = *found;
    }
  }
  task.id = sha256(task.identity.dump());
  if (task.id != id) refuse(whose + "id", id, task.id);
  return task;
}

}  // namespace nas
