#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "core/format.hpp"

namespace nas {

/// The lines of a display that has no terminal, each at once; and whether one is due, since nothing
/// was said for five minutes though training goes on.
class PlainLines {
 public:
  /// @param now  seconds of a clock that does not jump. Both outlive it.
  PlainLines(std::ostream& out, const std::function<double()>& now)
      : out_(out), now_(now), spoke_(now()) {}

  void write(const std::string& line) {
    out_ << printable(line) << '\n' << std::flush;
    spoke_ = now_();
  }
  [[nodiscard]] bool is_due() const { return now_() - spoke_ >= kLongestSilence; }

 private:
  static constexpr double kLongestSilence = 300.0;  // s

  std::ostream& out_;
  const std::function<double()>& now_;
  double spoke_;
};

}  // namespace nas
