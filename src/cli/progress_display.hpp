#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <thread>

#include "cli/plain_lines.hpp"
#include "cli/running_trainings.hpp"
#include "cli/status_lines.hpp"
#include "core/terminal.hpp"
#include "evaluation/recording_evaluator.hpp"
#include "evaluation/workforce.hpp"

namespace nas {

/// Shows a search while it runs. On a terminal two lines, rewritten at every event and every
/// second: counts and time left, and the best so far with what trains at the moment, both by name as
/// far as there is room. Else a plain line for each finished evaluation and each generation, and one
/// every five minutes that nothing finishes.
class ProgressDisplay {
 public:
  struct Options {
    bool terminal = false;
    std::function<int()> width = terminal_width;  ///< columns of the terminal
    std::int64_t expected_asks = 0;               ///< of the whole search; 0 = unknown
    std::int64_t expected_batches = 0;            ///< 0 = unknown
    int workers = 1;
    std::int64_t replicates = 1;           ///< evaluations of a candidate for one ask
    std::string objective = "perplexity";  ///< the first one
    bool maximise = false;                 ///< whether a larger value of it is better
    bool several = false;  ///< objectives: hypervolume and front in place of the best
    /// Of the first objective, in its own sense; NaN where one evaluation has none.
    std::function<double(const Evaluation&)> value;
    /// Whether one evaluation alone satisfies the constraints; empty: there are none.
    std::function<bool(const Evaluation&)> feasible{};
    std::function<std::string(const std::string&)> label;  ///< of a candidate
    std::function<double()> now{};                         ///< seconds; default: the steady clock
  };
  ProgressDisplay(std::ostream& out, Options options);
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void update(const Progress& progress);
  /// Counts an evaluation into the best, the rejected and the failures: what earlier processes of
  /// the run recorded.
  void count(const Evaluation& evaluation);
  /// The workers elsewhere, from now on.
  void workforce(const Workforce& workforce);
  /// How far the search is: shown where there are several objectives.
  void indicator(const Indicator& indicator);

 private:
  void add(const Evaluation& evaluation);
  void finished(const Evaluation& evaluation);
  void rewrite();
  [[nodiscard]] std::string counts() const;
  [[nodiscard]] std::string first_line(std::size_t columns) const;
  [[nodiscard]] std::string second_line(std::size_t columns) const;
  [[nodiscard]] std::string quality() const;
  [[nodiscard]] std::string asked() const;
  [[nodiscard]] std::string elapsed() const;
  [[nodiscard]] std::optional<TimeRange> left_by_asks() const;
  [[nodiscard]] std::optional<TimeRange> time_left() const;
  /// Whether the budget's time ends the search before all asks are asked.
  [[nodiscard]] bool ends_by_time() const;
  [[nodiscard]] std::optional<std::string> left() const;

  std::ostream& out_;
  Options options_;
  double started_;
  std::optional<double> best_;
  std::string best_label_;
  std::optional<Indicator> indicator_;
  std::optional<Workforce> workforce_;
  std::int64_t evaluated_ = 0;  ///< evaluations, those of earlier processes included
  std::int64_t rejected_ = 0;   ///< of these
  std::int64_t failures_ = 0;   ///< of these
  std::int64_t answered_ = 0;   ///< asks of finished batches
  std::int64_t settled_ = 0;    ///< evaluations and recalls by the end of the last batch
  RunningTrainings trainings_;
  std::mutex mutex_;                  ///< between the search and the ticker
  std::optional<Progress> last_;      ///< the last event; only its numbers are looked at
  std::optional<StatusLines> lines_;  ///< of a terminal
  std::optional<PlainLines> plain_;   ///< else
  std::condition_variable_any wake_;
  std::jthread ticker_;
};

}  // namespace nas
