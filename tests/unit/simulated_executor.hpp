#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <queue>

#include "core/stop.hpp"
#include "evaluation/executor.hpp"
#include "prelude.hpp"

namespace nas::testing {

/// Workers in simulated time: each task takes what its result says in measured["train_seconds"], so
/// that thousands of trainings by hundreds of workers take seconds.
class SimulatedExecutor final : public Executor {
 public:
  /// @param measurement  outlives it.
  SimulatedExecutor(Measurement& measurement, std::size_t workers)
      : measurement_(measurement), workers_(workers) {}

  void submit(Task task, Evaluation begun) override {
    waiting_.push_back({.task = std::move(task), .evaluation = std::move(begun)});
    last_submitted_ = now_;
    busy_then_ = busy_;
  }
  void withdraw() override { waiting_.clear(); }
  std::optional<Event> next() override {
    if (stop_requested()) throw StopRequested();
    for (; running_.size() < workers_ && !waiting_.empty(); waiting_.pop_front()) {
      auto& order = waiting_.front();
      measurement_.measure(order.task, order.evaluation);
      order.end = now_ + order.evaluation.measured.value("train_seconds", 0.0);
      order.number = started_++;
      running_.push(std::move(order));
    }
    if (running_.empty()) return std::nullopt;
    auto done = running_.top();
    busy_ += static_cast<double>(running_.size()) * (done.end - now_);
    now_ = done.end;
    running_.pop();
    return Event{.kind = Event::Kind::finished,
                 .ids = {done.task.id},
                 .evaluations = {std::move(done.evaluation)}};
  }
  void abandon() override {
    waiting_.clear();
    running_ = {};
  }

  /// The share of the workers that were at work on average until the last task was submitted: what
  /// comes after is the end of every search.
  [[nodiscard]] double efficiency() const {
    return busy_then_ / (last_submitted_ * static_cast<double>(workers_));
  }

 private:
  struct Order {
    Task task;
    Evaluation evaluation;
    double end = 0.0;
    std::size_t number = 0;

    bool operator>(const Order& other) const {
      return std::pair(end, number) > std::pair(other.end, other.number);
    }
  };

  Measurement& measurement_;
  std::size_t workers_;
  std::deque<Order> waiting_{};
  std::priority_queue<Order, std::vector<Order>, std::greater<>> running_{};
  std::size_t started_ = 0;
  double now_ = 0.0;
  double busy_ = 0.0;  ///< seconds of all workers
  double last_submitted_ = 0.0;
  double busy_then_ = 0.0;
};

}  // namespace nas::testing
