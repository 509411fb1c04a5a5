#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <thread>

#include "cli/running_trainings.hpp"
#include "cli/status_lines.hpp"
#include "core/terminal.hpp"
#include "report/text.hpp"
#include "study/session/observer.hpp"

namespace nas {

/// Shows a search, or training runs beside one, while they advance. On a terminal two lines,
/// rewritten at every event and every second: counts and time left, and the best so far with what
/// trains at the moment, both by name as far as there is room. Else a plain line for each finished
/// evaluation and each generation, and one every five minutes that nothing finishes.
class ProgressDisplay {
 public:
  struct Options {
    bool terminal = false;
    std::function<int()> width = terminal_width;  ///< columns of the terminal
    std::string stage{};     ///< what is trained beside a search, "re-test"; empty: a search
    std::int64_t total = 0;  ///< of a stage: training runs, known ones included
    bool at_most = false;    ///< of a stage: whether they may be fewer
    std::int64_t expected_asks = 0;     ///< of the whole search; 0 = unknown
    std::int64_t expected_batches = 0;  ///< 0 = unknown
    int workers = 1;
    std::int64_t replicates = 1;           ///< evaluations of a candidate for one ask
    std::string objective = "perplexity";  ///< the first one
    bool maximise = false;                 ///< whether a larger value of it is better
    bool several = false;  ///< objectives: hypervolume and front in place of the best
    /// Of the first objective, in its own sense; NaN where one evaluation has none.
    std::function<double(const Evaluation&)> value{};
    /// Whether one evaluation alone satisfies the constraints; empty: there are none.
    std::function<bool(const Evaluation&)> feasible{};
    std::function<std::string(const std::string&)> label{};  ///< of a candidate
    std::function<double()> now = steady_seconds;
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
  /// What a group of seeds says, a line each, but for what was said before.
  void group_ended(const Observer::Group& group);

 private:
  [[nodiscard]] bool searches() const { return options_.stage.empty(); }
  void add(const Evaluation& evaluation);
  void finished(const Evaluation& evaluation);
  void show();                          ///< on a terminal
  void write(const std::string& line);  ///< where there is none
  [[nodiscard]] std::string quality() const;
  [[nodiscard]] std::string asked() const;
  [[nodiscard]] std::string elapsed() const;
  [[nodiscard]] std::string stage_line(std::size_t columns = kAnyWidth) const;
  [[nodiscard]] std::string search_line(std::size_t columns = kAnyWidth) const;
  [[nodiscard]] std::string second_line(std::size_t columns) const;
  [[nodiscard]] std::optional<TimeRange> left_by_asks() const;
  [[nodiscard]] std::optional<TimeRange> time_left() const;
  /// Whether the budget's time ends the search before all asks are asked.
  [[nodiscard]] bool ends_by_time() const;

  std::ostream& out_;
  Options options_;
  double started_;
  double spoke_;  ///< the last plain line
  std::optional<double> best_;
  std::string best_label_;
  std::optional<Indicator> indicator_;
  std::optional<Workforce> workforce_;
  std::set<std::string> said_;  ///< of groups
  std::string ended_;           ///< of a stage: what ended last
  std::int64_t evaluated_ = 0;  ///< evaluations, those of earlier processes included
  std::int64_t rejected_ = 0;   ///< of these
  std::int64_t failures_ = 0;   ///< of these
  std::int64_t answered_ = 0;   ///< asks of finished batches
  std::int64_t settled_ = 0;    ///< evaluations and recalls by the end of the last batch
  RunningTrainings trainings_;
  std::mutex mutex_;                  ///< between the study and the ticker
  std::optional<Progress> last_;      ///< the last event; only its numbers are looked at
  std::optional<StatusLines> lines_;  ///< of a terminal
  std::condition_variable_any wake_;
  std::jthread ticker_;
};

/// Shows a study while it runs: its search, then what follows it. Warnings go to standard error.
class StudyDisplay final : public Observer {
 public:
  /// @param terminal  lines are rewritten; else each event has a line of its own.
  /// @param quiet     warnings only.
  StudyDisplay(std::ostream& out, bool terminal, bool quiet)
      : out_(out), terminal_(terminal), quiet_(quiet) {}

  void warned(const std::string& text) override;
  void workforce_changed(const Workforce& workforce) override;
  void search_begins(const Search& search) override;
  void retried(std::int64_t evaluations) override;
  void recalled(const Evaluation& evaluation) override {
    if (shown_) shown_->count(evaluation);
  }
  void progressed(const Progress& progress) override {
    if (shown_) shown_->update(progress);
  }
  void indicated(const Indicator& indicator) override {
    if (shown_) shown_->indicator(indicator);
  }
  void search_ended() override { shown_.reset(); }
  void stage_begins(const Stage& stage) override;
  void stage_progressed(const Progress& progress) override { progressed(progress); }
  void stage_ended() override { shown_.reset(); }
  void group_ended(const Group& group) override {
    if (shown_) shown_->group_ended(group);
  }

 private:
  void begin(ProgressDisplay::Options options, const Problem& problem, const std::string& baseline);

  std::ostream& out_;
  bool terminal_;
  bool quiet_;
  std::optional<Workforce> workforce_{};
  std::unique_ptr<ProgressDisplay> shown_{};
};

}  // namespace nas
