#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <thread>

#include "evaluation/recording_evaluator.hpp"

namespace nas {

/// Shows a search while it runs: on a terminal one line that is rewritten at every event and every
/// second, else a plain line for each finished evaluation and each generation.
class ProgressDisplay {
 public:
  struct Options {
    bool terminal = false;
    int width = 100;                    ///< columns of the terminal
    std::int64_t expected_asks = 0;     ///< of the whole search; 0 = unknown
    std::int64_t expected_batches = 0;  ///< 0 = unknown
    int workers = 1;
    std::string objective = "perplexity";  ///< the first one
    bool maximise = false;                 ///< whether a larger value of it is better
    bool several = false;  ///< objectives: hypervolume and front in place of the best
    /// Of the first objective, in its own sense; NaN where one evaluation has none.
    std::function<double(const Evaluation&)> value;
    std::function<std::string(const std::string&)> label;  ///< of a candidate
    std::function<double()> now;                           ///< seconds; default: the steady clock
  };
  ProgressDisplay(std::ostream& out, Options options);
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void update(const Progress& progress);
  /// Counts an evaluation into the best and the failures: what earlier processes of the run
  /// recorded.
  void count(const Evaluation& evaluation);
  /// How far the search is: shown where there are several objectives.
  void indicator(const Indicator& indicator);

 private:
  void add(const Evaluation& evaluation);
  void finished(const Progress& progress);
  void rewrite(const Progress& progress);
  [[nodiscard]] std::string counts(const Progress& progress) const;
  [[nodiscard]] std::string quality() const;
  [[nodiscard]] double seconds_left(const Progress& progress) const;

  std::ostream& out_;
  Options options_;
  double started_;
  std::optional<double> best_;
  std::string best_label_;
  std::optional<Indicator> indicator_;
  std::int64_t failures_ = 0;
  std::int64_t answered_ = 0;              ///< asks of finished batches
  std::map<std::string, double> running_;  ///< start by candidate
  double busy_seconds_ = 0.0;              ///< of finished trainings
  std::int64_t measured_ = 0;
  bool line_open_ = false;
  std::mutex mutex_;              ///< between the search and the ticker
  std::optional<Progress> last_;  ///< what the ticker shows again
  std::condition_variable_any wake_;
  std::jthread ticker_;
};

}  // namespace nas
