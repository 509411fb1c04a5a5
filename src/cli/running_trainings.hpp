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

/// Seconds, from quick to slow.
struct TimeRange {
  double low = 0.0;
  double high = 0.0;
};

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

/// What trains at the moment, how far it is, and how long recent training runs took.
class RunningTrainings {
 public:
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

  /// What trains: "dot|softmax: step 1,200/5,000, loss 5.13; ...", "dot|softmax + 11 more: ..." of an
  /// array. Of several as many as there is room for; long names lose their middle, alike, but no
  /// more than leaves 12 columns, or go. Empty where nothing trains.
  /// @param label  of a candidate.
  [[nodiscard]] std::string text(std::size_t columns,
                                 const std::function<std::string(const std::string&)>& label) const;

 private:
  struct Running {
    std::string candidate;
    std::int64_t number;
    double began;
  };
  /// Training runs that are shown as one.
  struct Shown {
    std::string name;  ///< of the first
    std::int64_t others = 0;
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
  static std::optional<std::string> named(std::vector<Shown> some, std::size_t columns);

  std::map<std::string, Running> running_;  ///< by evaluation id
  std::vector<Array> arrays_;
  std::deque<double> durations_;  ///< of the last that finished
  std::optional<double> seconds_;
  std::int64_t started_ = 0;
};

}  // namespace nas
