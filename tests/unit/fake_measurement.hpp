#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/seed.hpp"
#include "evaluation/recording_evaluator.hpp"
#include "prelude.hpp"
#include "search/objective_set.hpp"

namespace nas::testing {

/// A small space of three letters and a number, and an analytic value with replicate noise:
/// everything about the evaluator and the algorithms can be tested on it without training anything.
class FakeMeasurement : public Measurement {
 public:
  static SearchSpace space() {
    return SearchSpace({{.name = "first", .options = {"a", "b", "c", "d"}},
                        {.name = "second", .options = {"a", "b", "c", "d"}},
                        {.name = "third", .options = {"a", "b", "c"}},
                        {.name = "number", .min = 0.0, .max = 1.0, .decimals = 1}});
  }
  /// Lower is better; the best is "d|d|c|0.5".
  static double value(const std::string& candidate, std::int64_t replicate) {
    double sum = 20.0;
    for (const std::size_t i : {0U, 2U, 4U}) sum -= (candidate[i] - 'a') * (i == 2U ? 2.0 : 1.0);
    sum += 4.0 * std::abs(std::stod(candidate.substr(6)) - 0.5);
    return sum + 0.1 * RandomEngine(derive_seed(9, replicate, "noise", candidate)).uniform();
  }

  Candidate canonical(const Genotype& genotype) const override {
    Candidate candidate{.name = genotype.option("first") + "|" + genotype.option("second") + "|" +
                                genotype.option("third") + "|" + shortest(genotype.real("number")),
                        .genotype = genotype};
    if (candidate.name[0] == refused_) candidate.refusal = "must not begin so";
    return candidate;
  }
  nlohmann::json identity() const override { return {{"fake", version_}}; }
  bool expensive() const override { return expensive_; }
  double expected_cost(const Candidate& candidate) const override {
    EXPECT_EQ(candidate.refusal, "");
    return candidate.name[0];
  }
  void begin_batch(std::span<const Evaluation* const> earlier) override {
    earlier_.push_back(earlier.size());
  }

  void screen(const Task& task, Evaluation& evaluation) override {
    EXPECT_EQ(task.candidate.refusal, "");
    if (on_screen_) on_screen_(task, evaluation);
  }

  void measure(const Task& task, Evaluation& evaluation) override {
    const int number = ++measured_;
    {
      const std::lock_guard lock(mutex_);
      ++times_[task.id];
      order_.push_back(task.candidate.name);
    }
    if (on_measure_) on_measure_(number, task);
    if (sleep_.count() > 0) std::this_thread::sleep_for(sleep_);
    evaluation.status = Status::ok;
    evaluation.values["value"] = value_(task.candidate.name, task.replicate);
    CurvePoint point;
    point.step = 1;
    point.valid.nll = 1.5;
    point.valid.tokens = 3;
    evaluation.curve = {point};
    evaluation.measured["train_seconds"] = 2.0;
  }

  void recorded(const Evaluation& evaluation) override {
    if (on_recorded_) on_recorded_(evaluation);
  }

  std::int64_t array_width() override {
    ++widths_asked_;
    return array_width_;
  }
  std::vector<std::vector<std::size_t>> alike(std::span<const Assignment> tasks) const override {
    if (!kind_) return Measurement::alike(tasks);
    std::vector<std::vector<std::size_t>> groups;
    std::map<char, std::size_t> known;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const auto group = known.emplace(kind_(tasks[i].task), groups.size()).first->second;
      groups.resize(std::max(groups.size(), group + 1));
      groups[group].push_back(i);
    }
    return groups;
  }
  void measure_array(std::span<const Assignment> array) override {
    {
      const std::lock_guard lock(mutex_);
      arrays_.push_back(array.size());
    }
    if (on_array_) on_array_(array);
    Measurement::measure_array(array);
    if (after_array_) after_array_(array);
  }

  using Measurement::tell;

  int version_ = 1;
  char refused_ = '\0';  ///< first letter of what is no candidate
  bool expensive_ = true;
  std::chrono::milliseconds sleep_{0};
  std::function<double(const std::string& candidate, std::int64_t replicate)> value_ = value;
  std::function<void(const Task&, Evaluation&)> on_screen_;
  std::function<void(int number, const Task&)> on_measure_;
  std::function<void(const Evaluation&)> on_recorded_;
  std::function<void(std::span<const Assignment>)> on_array_;
  std::function<void(std::span<const Assignment>)> after_array_;
  std::function<char(const Task&)> kind_;  ///< alike are tasks of one kind
  std::int64_t array_width_ = 1;
  int widths_asked_ = 0;
  std::vector<std::size_t> arrays_;  ///< sizes, those that failed included
  std::atomic<int> measured_{0};
  std::map<std::string, int> times_;
  Texts order_;
  std::vector<std::size_t> earlier_;
  std::mutex mutex_;
};

/// "value" as above, and with `several` objectives "letters", the sum of the letters' places: the
/// better the value, the more letters.
inline ObjectiveSet fake_objectives(bool several = false) {
  ObjectiveSet set;
  set.objectives.push_back(
      {.name = "value",
       .key = "value",
       .settings = {},
       .objective = {.unit = "1",
                     .trained = [](const Evaluation& e) { return e.values.at("value"); }},
       .range = Range{.best = 0.0, .worst = 100.0}});
  if (!several) return set;
  set.objectives.push_back({.name = "letters",
                            .key = "letters",
                            .settings = {},
                            .objective = {.unit = "1",
                                          .trained =
                                              [](const Evaluation& e) {
                                                return static_cast<double>(
                                                    e.candidate[0] + e.candidate[2] +
                                                    e.candidate[4] - 3 * 'a');
                                              }},
                            .range = Range{.best = 0.0, .worst = 8.0}});
  return set;
}

}  // namespace nas::testing
