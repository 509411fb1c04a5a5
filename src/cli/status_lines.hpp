#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "core/terminal.hpp"

namespace nas {

/// A text of at most so many columns, at least one: "…" stands for the middle of a longer one.
std::string abridged(const std::string& text, std::size_t columns);

/// A few lines at the bottom of a terminal which are rewritten in place. Between two calls the
/// cursor stays at the beginning of the first, so that the lines are found again however the
/// terminal has wrapped them after a change of its width.
class StatusLines {
 public:
  /// @param width, height  columns and rows of the terminal, asked for at every call.
  StatusLines(std::ostream& out, std::function<int()> width,
              std::function<int()> height = terminal_height);
  /// Leaves the last lines where they are, and the cursor below them.
  ~StatusLines();
  StatusLines(const StatusLines&) = delete;
  StatusLines& operator=(const StatusLines&) = delete;

  /// Columns that a line should take: one fewer than the terminal has, at least 20.
  [[nodiscard]] std::size_t columns() const;
  /// Shows lines, at least one, in place of the last ones, as many as the terminal has rows; one that
  /// is longer than a row is cut and ends in "…", of one that goes on in a further line the first is
  /// shown.
  void show(const std::vector<std::string>& lines);
  /// Writes a text above them, which stays there; none of its lines longer than columns().
  void leave(const std::string& text);

 private:
  /// Those that stay, and below them those that are shown.
  void draw(std::vector<std::string> lines);

  std::ostream& out_;
  std::function<int()> width_;
  std::function<int()> height_;
  std::vector<std::string> shown_;
};

/// One such line about what advances faster than anybody reads: shown at most twice per second.
class PacedLine {
 public:
  /// @param now  seconds of a clock that does not jump.
  PacedLine(std::ostream& out, std::function<int()> width, std::function<double()> now);

  /// @param last  shows it however soon it comes.
  void show(const std::string& line, bool last);

 private:
  StatusLines lines_;
  std::function<double()> now_;
  std::optional<double> shown_;  ///< when
};

}  // namespace nas
