#pragma once

#include <deque>
#include <optional>

#include "core/seed.hpp"
#include "core/stop.hpp"
#include "evaluation/executor.hpp"
#include "prelude.hpp"

namespace nas::testing {

/// Works on several tasks at once and finishes them in random order.
class ShuffledExecutor : public Executor {
 public:
  ShuffledExecutor(std::size_t workers, std::uint64_t seed)
      : workers_(workers), random_(derive_seed(seed, 0, "order of finishing", 0)) {}

  void submit(Task task, Evaluation begun) override {
    waiting_.emplace_back(std::move(task), std::move(begun));
    most_out_ = std::max(most_out_, waiting_.size() + running_.size());
  }
  void withdraw() override { waiting_.clear(); }
  std::optional<Event> next() override {
    if (waiting_.empty() && running_.empty()) return std::nullopt;
    if (stop_requested()) throw StopRequested();
    if (running_.size() < workers_ && !waiting_.empty()) {
      running_.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
      return Event{.kind = Event::Kind::started, .ids = {running_.back().first.id}};
    }
    const auto chosen = running_.begin() + random_.below(std::ssize(running_));
    auto [task, evaluation] = std::move(*chosen);
    running_.erase(chosen);
    measurement->measure(task, evaluation);
    return Event{.kind = Event::Kind::finished, .ids = {task.id}, .evaluations = {evaluation}};
  }
  void abandon() override {
    waiting_.clear();
    running_.clear();
  }
  [[nodiscard]] std::size_t most_out() const { return most_out_; }

  Measurement* measurement = nullptr;

 private:
  using Order = std::pair<Task, Evaluation>;
  std::size_t workers_;
  RandomEngine random_;
  std::deque<Order> waiting_{};
  std::vector<Order> running_{};
  std::size_t most_out_ = 0;
};

}  // namespace nas::testing
