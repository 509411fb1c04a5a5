#include "study/worker.hpp"

#include <map>
#include <utility>

#include <unistd.h>

#include "core/host.hpp"
#include "evaluation/local_executor.hpp"
#include "instruments/environment.hpp"
#include "ops/memory.hpp"
#include "study/session.hpp"

namespace nas {

Worker::Worker(Experiment experiment, std::filesystem::path folder)
    : experiment_(std::make_unique<const Experiment>(std::move(experiment))) {
  nn::install_cpu_allocator();  // before the first tensor
  problem_ = make_problem(*experiment_, experiment_->objectives, folder);
  const auto threads = experiment_->evaluation.get<std::int64_t>("threads");
  if (problem_->expensive()) nn::take_product_buffers(static_cast<int>(threads));
}

Worker::~Worker() = default;

nlohmann::json Worker::measure(const nlohmann::json& order) {
  return measure_all(std::vector<nlohmann::json>(1, order)).front();
}

std::vector<nlohmann::json> Worker::measure_all(
    const std::vector<nlohmann::json>& orders,
    const std::function<void(const Advance&)>& listener) {
  LocalExecutor executor(*problem_, 1);
  std::map<std::string, std::size_t> places;
  for (const auto& order : orders) {
    auto task = read_task(order.at("task"), *problem_);
    places.emplace(task.id, places.size());
    executor.submit(std::move(task), order.at("evaluation"));
  }
  std::vector<nlohmann::json> measured(orders.size());
  while (const auto event = executor.next()) {
    if (event->kind == Executor::Event::Kind::advanced && listener) listener(event->advance);
    for (const auto& evaluation : event->evaluations) {
      auto& one = measured[places.at(evaluation.id)] = evaluation;
      one["measured"].update({{"host", host_name()}, {"pid", getpid()}, {"model", device()}});
    }
  }
  return measured;
}

void Worker::require_identity(const nlohmann::json& identity) const {
  nas::require_identity(identity, problem_->identity(), "");
}

std::string Worker::device() const {
  return nn::device_model(experiment_->evaluation.get<std::string>("device"));
}

}  // namespace nas
