#pragma once

#include <cstddef>
#include <cstdint>

#include "indicators/indicators.hpp"

namespace nas {

/// What a search believes of one candidate: its latest answer, which is the mean over all that is
/// known, and nothing where that is a failure or was stopped early; where every ask trained it
/// afresh and answered by that alone (evaluation.repeated = retrain), the mean over its answers
/// that are ok.
struct Belief {
  std::int64_t answers = 0;
  Point point{};

  /// @param answer  one that is ok.
  /// @param mean    whether answers are independent of each other.
  void add(const Point& answer, bool mean) {
    ++answers;
    if (answers == 1 || !mean) {
      point = answer;
      return;
    }
    for (std::size_t i = 0; i < point.size(); ++i) {
      point[i] += (answer[i] - point[i]) / static_cast<double>(answers);
    }
  }
};

}  // namespace nas
