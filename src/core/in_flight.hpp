#pragma once

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace nas {

/// The file of a run's folder that InFlight writes to.
inline constexpr const char* kEndingsFile = "endings.txt";

struct InFlightSlot;

/// What a thread is at, while this lives: if the process ends by its own fault meanwhile, a file
/// says what that was, one line "NAME HOW" each, so that later processes do not try it for ever.
/// HOW is the signal (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT), or kOverdue. Nothing is written
/// where somebody else ends the process (SIGKILL, SIGTERM). What other threads are at is not named,
/// unless the thread that fails is at nothing, as one that a library has started: of several things
/// at work each is kBeside then, which blames none of them, and only one alone has the signal.
///
/// Where a time is set that passes without an end, everything is asked to stop, and 4 seconds later
/// the process is left with exit code 75: nothing else ends what hangs.
class InFlight {
 public:
  static constexpr std::string_view kOverdue = "overdue";
  static constexpr std::string_view kBeside = "beside";

  /// @param file   that is appended to, in a folder that is there by then.
  /// @param names  without blanks.
  /// @param seconds  of awake_now() after which they are overdue; 0: never.
  InFlight(std::filesystem::path file, std::vector<std::string> names, double seconds = 0.0);
  ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  /// While it lives, its thread waits for the machine, as for a disk that stalls: time that does not
  /// make overdue what the thread is at.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    InFlightSlot* slot_;                           ///< null where the thread is at nothing
    std::chrono::steady_clock::time_point due_{};  ///< of what it is at, when the pause begins
    std::chrono::steady_clock::time_point began_{};
  };

 private:
  InFlightSlot* slot_;
};

/// How processes ended while they were at something, in order: what such a file says of it. Nothing
/// where there is no file. @throws MachineError if it cannot be read.
std::vector<std::string> endings_of(const std::filesystem::path& file, std::string_view name);

/// Takes what it says of some names out of such a file. @throws MachineError that names it.
void forget_endings(const std::filesystem::path& file, const std::set<std::string>& names);

}  // namespace nas
