#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace nas {

/// Reads lines from a pipe or file that another process may hold open for hours.
class LineReader {
 public:
  /// Longest line that is taken, bytes.
  static constexpr std::size_t kLongest = std::size_t{16} << 20U;

  /// @param file  a descriptor, which stays the caller's.
  explicit LineReader(int file) : file_(file) {}

  enum class Got { line, nothing, end };
  /// Waits for a line, but no longer than asked.
  /// @param line  receives it, without its end; the last one may have none.
  /// @throws InputError for a line above kLongest.
  Got next(std::string& line, std::chrono::milliseconds wait);

 private:
  int file_;
  std::string read_{};      ///< not given yet
  std::size_t searched_{};  ///< bytes of it that hold no end of a line
  bool ended_ = false;
};

}  // namespace nas
