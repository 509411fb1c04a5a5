#pragma once

#include <mutex>

#include "prelude.hpp"
#include "unit/fake_measurement.hpp"

namespace nas::testing {

/// Takes steps to rungs 10, 20 and 40, and goes on from what it has taken before, unless that is
/// lost. Values improve by the step.
class SteppingMeasurement final : public FakeMeasurement {
 public:
  std::vector<std::int64_t> rungs() const override { return {10, 20, 40}; }
  void end_at(Evaluation& evaluation, std::int64_t rung) const override {
    pause_at(evaluation, rung, 0.0);
    if (evaluation.status == Status::paused) set_value(evaluation);
  }
  void measure(const Task& task, Evaluation& evaluation) override {
    const int number = ++measured_;
    if (on_measure_) on_measure_(number, task);
    const std::lock_guard lock(mutex_);
    const auto end = task.until == 0 ? std::int64_t{40} : task.until;
    const bool fails = task.candidate.name[0] == fails_;
    auto& taken = taken_[task.id];
    if (fails && end > 10) {
      evaluation.status = Status::diverged;
      evaluation.reason = "at step 20";
    } else {
      evaluation.status = end < 40 ? Status::paused : Status::ok;
    }
    for (const auto step : rungs()) {
      if (step > end || (fails && step > 10)) break;
      if (step > taken) steps_ += step - std::exchange(taken, step);
      CurvePoint point;
      point.step = step;
      point.valid.nll =
          3.0 * value(task.candidate.name, task.replicate) + 40.0 - 1.0 * double(step);
      point.valid.tokens = 3;
      point.valid.batches = 1;
      point.seconds = 0.1 * static_cast<double>(step);
      evaluation.curve.push_back(point);
    }
    evaluation.measured["train_seconds"] = evaluation.curve.back().seconds;
    if (is_usable(evaluation)) set_value(evaluation);
    if (on_measured_) on_measured_(evaluation);
  }

  std::function<void(Evaluation&)> on_measured_{};
  std::map<std::string, std::int64_t> taken_{};  ///< steps, by id
  std::int64_t steps_ = 0;                       ///< taken in all
  char fails_ = '\0';                            ///< first letter of what diverges after a rung

 private:
  static void set_value(Evaluation& evaluation) {
    evaluation.values["value"] = evaluation.curve.back().valid.nll;
    set_quality_values(evaluation, 0.0);
  }
};

}  // namespace nas::testing
