#include "study/worker.hpp"

#include <utility>

#include "evaluation/local_executor.hpp"
#include "ops/memory.hpp"
#include "study/session.hpp"

namespace nas {

Worker::Worker(Experiment experiment)
    : experiment_(std::make_unique<const Experiment>(std::move(experiment))) {
  nn::install_cpu_allocator();  // before the first tensor
  problem_ = make_problem(*experiment_, experiment_->objectives, {});
}

Worker::~Worker() = default;

nlohmann::json Worker::measure(const nlohmann::json& order) {
  LocalExecutor executor(*problem_, 1);
  executor.submit(read_task(order.at("task"), *problem_), order.at("evaluation"));
  nlohmann::json measured;
  while (const auto event = executor.next()) {
    if (event->kind == Executor::Event::Kind::finished) measured = event->evaluations.front();
  }
  return measured;
}

}  // namespace nas
