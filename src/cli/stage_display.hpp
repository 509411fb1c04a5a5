#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <set>
#include <string>

#include "cli/plain_lines.hpp"
#include "cli/running_trainings.hpp"
#include "cli/status_lines.hpp"
#include "core/terminal.hpp"
#include "evaluation/recording_evaluator.hpp"
#include "evaluation/workforce.hpp"
#include "study/session/observer.hpp"

namespace nas {

/// Shows a known number of training runs while they advance: on a terminal two lines that are
/// rewritten, else one line per finished run, and one every five minutes that nothing finishes.
class StageDisplay {
 public:
  struct Options {
    bool terminal = false;
    std::function<int()> width = terminal_width;  ///< columns of the terminal
    std::string stage;                            ///< what the training runs are for: "re-test"
    std::int64_t total = 0;                       ///< training runs, known ones included
    bool at_most = false;                         ///< whether they may be fewer
    int workers = 1;
    std::function<std::string(const std::string&)> label;  ///< of a candidate
    std::function<double()> now{};                         ///< seconds; default: the steady clock
  };
  StageDisplay(std::ostream& out, Options options);

  /// "re-test 3/20, 3 to 4 min left, 41 s elapsed" or, where they may be fewer, "training 3 of at most
  /// 60, at most 4 min left, 41 s elapsed", and beneath it what trains; or all of it in one
  /// line that ends in ": LABEL replicate 1000002".
  void update(const Progress& progress);
  /// What a group of seeds says, a line each, but for what was said before.
  void group_ended(const Observer::Group& group);
  /// The workers elsewhere, from now on.
  void workforce(const Workforce& workforce);

 private:
  [[nodiscard]] std::string times(const Progress& progress) const;
  [[nodiscard]] std::string finished(const Evaluation& evaluation) const;

  std::ostream& out_;
  Options options_;
  double started_;
  RunningTrainings trainings_;
  std::set<std::string> said_;
  std::optional<Workforce> workforce_;
  std::optional<StatusLines> lines_;  ///< of a terminal
  std::optional<PlainLines> plain_;   ///< else
};

}  // namespace nas
