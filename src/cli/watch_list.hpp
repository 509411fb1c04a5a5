#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/run_watch.hpp"

namespace nas {

/// Runs below folders, as they are looked at again and again while others write them or make new
/// ones. Of a run that nobody writes its row is kept alone, and it is not read again before its
/// store changes.
class WatchList {
 public:
  /// @param words  folders that hold runs at most three folders deep, or runs.
  /// @throws InputError if a word is neither.
  explicit WatchList(const std::vector<std::string>& words);

  /// Looks for runs and for what is new of them, for a part of a second, and after all were read
  /// once so seldom that it takes a tenth of a core. What cannot be read is a part of the state.
  void look();
  /// Counts the changes.
  [[nodiscard]] std::int64_t version() const { return version_; }
  /// A row a run. See docs/how-to/watch-a-run.md.
  [[nodiscard]] nlohmann::json state() const;
  /// Whether a run has this number.
  [[nodiscard]] bool contains(std::size_t number) const;
  /// The run of a number that there is, as it is by now. Its time is counted as that of look().
  RunWatch& open(std::size_t number);

 private:
  using Clock = std::chrono::steady_clock;
  /// What changes with the contents of a store: sizes and times of it and of its journal.
  using Stamp = std::array<std::pair<std::uintmax_t, std::filesystem::file_time_type>, 2>;
  struct Run {
    std::string name;
    std::filesystem::path store;
    std::unique_ptr<RunWatch> watch{};  ///< where somebody writes the run, or has its page open
    nlohmann::json row{};               ///< null: not read yet
    Stamp stamp{};                      ///< when `watch` was made last
    std::int64_t version = 0;           ///< of `watch`, also of one that is gone
    Clock::time_point opened{};
    bool gone = false;
  };
  static Stamp stamp_of(const std::filesystem::path& store);
  void scan();
  /// Adds the runs there. @return whether there are any.
  bool find(const std::filesystem::path& folder, const std::string& name, int depth);
  void add(const std::filesystem::path& store, const std::string& name);
  void read(Run& run);
  [[nodiscard]] std::size_t num_unread() const;
  void rest(Clock::duration took);

  std::vector<std::string> words_;
  std::vector<Run> runs_;  ///< by number, those that are gone, too
  std::size_t turn_ = 0;   ///< of the run that is read next
  Clock::time_point next_look_{}, next_scan_{};
  std::int64_t version_ = 0;
};

}  // namespace nas
