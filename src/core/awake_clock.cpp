#include "core/awake_clock.hpp"

#include <algorithm>
#include <mutex>
#include <thread>

#include <unistd.h>

namespace nas {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPace{250};
constexpr std::chrono::seconds kLongestGap{2};

/// When the process was seen to run, and for how long it was not.
class Heartbeat {
 public:
  Clock::time_point now() {
    const std::lock_guard lock(mutex_);
    if (process_ != getpid()) begin();
    return awake(Clock::now());
  }

 private:
  void begin() {
    process_ = getpid();
    seen_ = Clock::now();
    std::thread([this] {
      while (true) {
        std::this_thread::sleep_for(kPace);
        const std::lock_guard lock(mutex_);
        const auto time = Clock::now();
        const auto counted = awake(time);
        away_ = time - counted;
        seen_ = time;
      }
    }).detach();
  }

  /// Continuous where the gap is noted: before and after, of it 2 s count.
  [[nodiscard]] Clock::time_point awake(Clock::time_point time) const {
    return std::min(time, seen_ + kLongestGap) - away_;
  }

  std::mutex mutex_;
  pid_t process_ = 0;  ///< whose thread notes it
  Clock::time_point seen_{};
  Clock::duration away_{};
};

}  // namespace

Clock::time_point awake_now() {
  static auto& heartbeat = *new Heartbeat();  // its thread is never joined
  return heartbeat.now();
}

}  // namespace nas
