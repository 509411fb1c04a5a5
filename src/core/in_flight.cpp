#include "core/in_flight.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "core/awake_clock.hpp"
#include "core/durable_file.hpp"
#include "core/stop.hpp"
#include "core/warning.hpp"

namespace nas {

/// What a thread is at. Slots never move: handlers of signals look at them.
struct InFlightSlot {
  std::atomic<pid_t> thread{0};  ///< 0: free; the rest is set by then
  std::filesystem::path file{};
  std::vector<std::string> names{};
  std::chrono::steady_clock::time_point due{};

  /// Says how they end. Also from a handler, which may not allocate.
  void mark(std::string_view how) const noexcept {
    // Follows no link, and never waits for the reader of a pipe.
    const int descriptor = open(
        file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (descriptor < 0) return;
    for (const auto& name : names) {
      for (const auto text :
           {std::string_view(name), std::string_view(" "), how, std::string_view("\n")}) {
        [[maybe_unused]] const auto written = write(descriptor, text.data(), text.size());
      }
    }
    close(descriptor);
  }
};

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMachineFailed = 75;
constexpr std::chrono::seconds kLastSeconds{4};  // for the others' checkpoints
constexpr std::array<std::pair<int, std::string_view>, 5> kCrashes{{{SIGSEGV, "SIGSEGV"},
                                                                    {SIGBUS, "SIGBUS"},
                                                                    {SIGFPE, "SIGFPE"},
                                                                    {SIGILL, "SIGILL"},
                                                                    {SIGABRT, "SIGABRT"}}};

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): handlers have nothing else
auto& slots = *new std::array<InFlightSlot, 1024>();  // the watching thread is never joined
auto& slots_mutex = *new std::mutex();
thread_local InFlightSlot* own_slot = nullptr;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

extern "C" void on_crash(int signal) {
  const auto* crash = std::find_if(kCrashes.begin(), kCrashes.end(),
                                   [signal](const auto& one) { return one.first == signal; });
  const pid_t self = gettid();
  bool own = false;
  std::size_t at_work = 0;
  for (const auto& slot : slots) {
    const pid_t thread = slot.thread;
    own |= thread == self;
    if (thread != 0) at_work += slot.names.size();
  }
  for (const auto& slot : slots) {
    const pid_t thread = slot.thread;
    if (thread == 0 || (own && thread != self)) continue;
    slot.mark(own || at_work == 1 ? crash->second : InFlight::kBeside);
  }
  raise(signal);  // the handler is gone: this ends the process, or the fault does when it recurs
}

/// Unless they are handled already.
void handle_crashes() {
  for (const auto& [signal, name] : kCrashes) {
    struct sigaction present {};
    sigaction(signal, nullptr, &present);
    if (present.sa_handler != SIG_DFL) continue;
    struct sigaction action {};
    action.sa_handler = on_crash;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER | SA_ONSTACK);
    sigaction(signal, &action, nullptr);
  }
}

/// What handlers run on in a thread, while it lives: its own stack may be what has overflowed. Where
/// one was set already, that stays.
class HandlerStack {
 public:
  HandlerStack() {
    stack_t present{};
    if (sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
    room_ = std::make_unique<std::byte[]>(kSize);
    stack_t own{};
    own.ss_sp = room_.get();
    own.ss_size = kSize;
    sigaltstack(&own, nullptr);
  }
  ~HandlerStack() {
    if (!room_) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  HandlerStack(const HandlerStack&) = delete;
  HandlerStack& operator=(const HandlerStack&) = delete;

 private:
  static constexpr std::size_t kSize = std::size_t{64} << 10;  // registers alone may take 11 KiB
  std::unique_ptr<std::byte[]> room_;
};

/// Marks what is overdue. @return whether something is.
bool mark_overdue() {
  const std::lock_guard lock(slots_mutex);
  const auto now = awake_now();
  const auto* const overdue = std::find_if(slots.begin(), slots.end(), [now](const auto& slot) {
    return slot.thread != 0 && now >= slot.due;
  });
  if (overdue == slots.end()) return false;
  overdue->mark(InFlight::kOverdue);
  return true;
}

/// Ends the process once something is overdue.
void watch() {
  do {
    std::this_thread::sleep_for(std::chrono::seconds(1));
  } while (!mark_overdue());
  warn("what is at work does not end; the process does, and the same command continues");
  request_stop();
  std::this_thread::sleep_for(kLastSeconds);
  _exit(kMachineFailed);
}

}  // namespace

InFlight::InFlight(std::filesystem::path file, std::vector<std::string> names, double seconds) {
  thread_local const HandlerStack stack;
  (void)stack;
  const std::lock_guard lock(slots_mutex);
  static const bool handled = (handle_crashes(), true);
  if (seconds > 0.0) {
    static const bool watched = (std::thread(watch).detach(), true);
    (void)watched;
  }
  (void)handled;
  auto* const free =
      std::find_if(slots.begin(), slots.end(), [](const auto& slot) { return slot.thread == 0; });
  if (free == slots.end()) throw std::logic_error("more threads at work than slots for them");
  free->file = std::move(file);
  free->names = std::move(names);
  free->due = seconds > 0.0
                  ? awake_now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(std::min(seconds, 1e9)))
                  : Clock::time_point::max();
  free->thread = gettid();
  slot_ = own_slot = free;
}

InFlight::~InFlight() {
  const std::lock_guard lock(slots_mutex);
  slot_->thread = 0;
  own_slot = nullptr;
}

InFlight::Pause::Pause() : slot_(own_slot) {
  if (slot_ == nullptr || slot_->due == Clock::time_point::max()) return;
  const std::lock_guard lock(slots_mutex);
  began_ = awake_now();
  due_ = std::exchange(slot_->due, Clock::time_point::max());
}

InFlight::Pause::~Pause() {
  if (slot_ == nullptr || due_ == Clock::time_point()) return;
  const std::lock_guard lock(slots_mutex);
  slot_->due = due_ + (awake_now() - began_);
}

std::vector<std::string> endings_of(const std::filesystem::path& file, std::string_view name) {
  std::vector<std::string> endings;
  if (!std::filesystem::exists(file)) return endings;
  std::istringstream lines(read_bytes(file));
  for (std::string of, how; lines >> of >> how;) {
    if (of == name) endings.push_back(how);
  }
  return endings;
}

void forget_endings(const std::filesystem::path& file, const std::set<std::string>& names) {
  if (!std::filesystem::exists(file)) return;
  std::istringstream lines(read_bytes(file));
  std::string kept;
  for (std::string of, how; lines >> of >> how;) {
    if (!names.contains(of)) kept += of + ' ' + how + '\n';
  }
  write_durably(file, kept);
}

}  // namespace nas
