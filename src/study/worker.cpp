#include "study/worker.hpp"

#include <map>
#include <utility>

#include <unistd.h>

#include "core/error.hpp"
#include "core/host.hpp"
#include "evaluation/command_executor.hpp"
#include "evaluation/failures.hpp"
#include "evaluation/local_executor.hpp"
#include "instruments/environment.hpp"
#include "ops/memory.hpp"
#include "study/session/session.hpp"

namespace nas {

Worker::Worker(Experiment experiment, std::filesystem::path folder)
    : experiment_(std::make_unique<const Experiment>(std::move(experiment))) {
  nn::install_cpu_allocator();  // before the first tensor
  problem_ = make_problem(*experiment_, experiment_->objectives, folder);
  problem_->do_without_checkpoints();
  const auto threads = experiment_->evaluation.get<std::int64_t>("threads");
  if (problem_->expensive()) nn::take_product_buffers(static_cast<int>(threads));
}

Worker::~Worker() = default;

namespace {

/// The evaluation that an order's task begins as.
Evaluation begun_as(const Task& task, const nlohmann::json& order) {
  Evaluation evaluation = order.at("evaluation");
  if (evaluation.id == task.id) return evaluation;
  throw InputError("task " + task.id + ": evaluation.id = " + evaluation.id +
                   ", must be that of the task");
}

}  // namespace

nlohmann::json Worker::measure(const nlohmann::json& order) {
  return measure_all(std::vector<nlohmann::json>(1, order)).front();
}

std::vector<nlohmann::json> Worker::measure_all(
    const std::vector<nlohmann::json>& orders,
    const std::function<void(const Advance&)>& listener) {
  const auto executor = local_executor(*problem_, 1);
  std::map<std::string, std::size_t> places;
  for (const auto& order : orders) {
    auto task = read_task(order.at("task"), *problem_);
    auto begun = begun_as(task, order);
    if (!places.emplace(task.id, places.size()).second) {
      throw InputError("task " + task.id + ": comes twice in one order, must come once");
    }
    executor->submit(std::move(task), std::move(begun));
  }
  std::vector<nlohmann::json> measured(orders.size());
  while (const auto event = executor->next()) {
    if (event->kind == Executor::Event::Kind::advanced && listener) listener(event->advance);
    for (const auto& evaluation : event->evaluations) {
      measured[places.at(evaluation.id)] = signed_here(evaluation);
    }
  }
  return measured;
}

nlohmann::json Worker::inspect(const nlohmann::json& order, const std::string& what) {
  const auto task = read_task(order.at("task"), *problem_);
  const auto* objective = experiment_->objectives.find(what);
  if (what != kArrayWidth && (objective == nullptr || !objective->objective.measured)) {
    throw InputError("measure = " + what + ", must be a measured objective of the study or " +
                     kArrayWidth);
  }
  auto evaluation = begun_as(task, order);
  evaluation.status = Status::ok;
  record_lone_failure(evaluation, [&] {
    evaluation.measured[what] =
        what == kArrayWidth ? nlohmann::json{{"value", problem_->array_width()}}
                            : objective->objective.measured(*problem_->subject(task.candidate));
  });
  return signed_here(evaluation);
}

/// With the worker that measured it.
nlohmann::json Worker::signed_here(const nlohmann::json& evaluation) const {
  auto one = evaluation;
  one["measured"].update({{"host", host_name()}, {"pid", getpid()}, {"model", device()}});
  return one;
}

void Worker::require_identity(const nlohmann::json& identity) const {
  nas::require_identity(identity, problem_->identity(), "");
}

std::string Worker::device() const {
  return nn::device_model(experiment_->evaluation.get<std::string>("device"));
}

}  // namespace nas
