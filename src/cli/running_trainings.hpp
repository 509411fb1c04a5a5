#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/recording_evaluator.hpp"
#include "evaluation/workforce.hpp"

namespace nas {

/// Seconds of a clock that does not jump.
double steady_seconds();

/// Columns that names of what trains may take where there is no terminal.
inline constexpr std::size_t kBroad = 120;

/// Seconds, from quick to slow.
struct TimeRange {
  double low = 0.0;
  double high = 0.0;
};

/// The share of a training run's steps that are taken, in [0, 1]; 0 where it is not known how many
/// there are.
double share_done(std::int64_t step, std::int64_t steps);

/// Time that so many training runs take the workers, at the lower and at the upper quartile of what
/// the last ones, in order of their ends, took: of the last 20. Nothing where there is none.
std::optional<TimeRange> time_left(double trainings, int workers, std::vector<double> seconds);

/// Time left of a search that a budget of training time may end: what began goes on to its end.
/// @param by_asks  until all asks are answered; nothing where that is not known.
/// @param budget   seconds of training that the budget allows beyond what was told, >= 0.
/// @param elapsed  seconds of training of what runs.
/// @param running  until what runs has ended; nothing where that is not known.
TimeRange time_left_by_budget(const std::optional<TimeRange>& by_asks, double budget,
                              double elapsed, const std::optional<TimeRange>& running, int workers);

/// "41 s left", "3 to 5 min left", "1.5 to 2 h left".
std::string left_text(const TimeRange& left);

/// "2 workers, 4 slots".
std::string text_of(const Workforce& workforce);

/// What trains at the moment, how far it is, and how long recent training runs took. Training runs
/// are numbered in the order in which they start.
class RunningTrainings {
 public:
  /// Continues the numbering of an earlier process, in which one more was trained.
  void count_earlier() { ++started_; }
  /// Takes an event about an evaluation. @param now  seconds, of any clock that does not jump.
  void update(const Progress& progress, double now);
  /// Seconds that the evaluation which finished last took, in an array its share; nothing if it had
  /// not started, as one that is rejected has not.
  [[nodiscard]] std::optional<double> seconds() const { return seconds_; }
  /// Number of training runs that have started and not finished.
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(running_.size()); }

  /// Time until these and `further` training runs are finished: as many as remain, what is done of
  /// those that run left out, at the lower and at the upper quartile of what the last 20 took,
  /// those that run at their present pace included. Nothing before anything is known of that.
  [[nodiscard]] std::optional<TimeRange> left(double further, int workers, double now) const;
  /// Seconds of training, an array's once, that those which run have taken, as far as steps of theirs
  /// are known.
  [[nodiscard]] double elapsed(double now) const;

  /// What trains, by names: "dot|softmax: step 1,200/5,000, loss 5.13; ...", "dot|softmax + 11 more:
  /// ..." of an array. Long names lose their middle, alike; nothing where less than 12 columns would
  /// be left of one.
  /// @param label  of a candidate.
  [[nodiscard]] std::optional<std::string> named(
      std::size_t columns, const std::function<std::string(const std::string&)>& label) const;
  /// The same by numbers, "3-14: step 1,200/5,000, loss 5.13"; of several as many as there is room
  /// for, at least one. Empty where nothing trains.
  [[nodiscard]] std::string numbered(std::size_t columns) const;
  /// By names where there is room for them, else by numbers.
  [[nodiscard]] std::string text(
      std::size_t columns, const std::function<std::string(const std::string&)>& label) const {
    const auto names = named(columns, label);
    return names ? *names : numbered(columns);
  }

 private:
  struct Running {
    std::string candidate;
    std::int64_t number;
    double began;
  };
  /// Training runs that are shown as one.
  struct Shown {
    std::string candidate;  ///< of the first
    std::int64_t first, last;
    std::string state;  ///< "step 1,200/5,000, loss 5.13", or "training"
  };
  /// Training runs number `first` to `last`, together.
  struct Array {
    std::int64_t first, last;
    std::int64_t first_step;  ///< when it was heard of first
    double since;
    std::int64_t step, steps;
    double loss;

    [[nodiscard]] bool has(std::int64_t number) const { return first <= number && number <= last; }
  };
  void finish(const Evaluation& evaluation, double now);
  void advance(const Progress& progress, double now);
  [[nodiscard]] const Array* array_of(std::int64_t number) const;
  [[nodiscard]] std::vector<double> recent(double now) const;
  [[nodiscard]] std::vector<Shown> shown() const;

  std::map<std::string, Running> running_;  ///< by evaluation id
  std::vector<Array> arrays_;
  std::deque<double> durations_;  ///< of the last that finished
  std::optional<double> seconds_;
  std::int64_t started_ = 0;
};

}  // namespace nas
