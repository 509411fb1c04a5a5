#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "evaluation/recording_evaluator.hpp"

namespace nas {

/// Shows a known number of trainings while they run: on a terminal one line that is rewritten, else
/// a line for each finished one.
class StageDisplay {
 public:
  struct Options {
    bool terminal = false;
    int width = 100;         ///< columns of the terminal
    std::string stage;       ///< what the trainings are for: "re-test"
    std::int64_t total = 0;  ///< trainings, known ones included
    std::function<std::string(const std::string&)> label;  ///< of a candidate
  };
  StageDisplay(std::ostream& out, Options options);
  ~StageDisplay();
  StageDisplay(const StageDisplay&) = delete;
  StageDisplay& operator=(const StageDisplay&) = delete;

  /// "re-test 3/20, 41 s elapsed, 3 min 20 s left: LABEL replicate 1000002".
  void update(const Progress& progress);

 private:
  [[nodiscard]] std::string line(const Progress& progress) const;

  std::ostream& out_;
  Options options_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  bool line_open_ = false;
};

}  // namespace nas
