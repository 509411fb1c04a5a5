#include "store/busy.hpp"

#include <thread>
#include <utility>

#include <sqlite3.h>

#include "core/format.hpp"
#include "core/stop.hpp"
#include "core/warning.hpp"

namespace nas {

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

BusyWait::BusyWait(std::filesystem::path file, std::chrono::milliseconds said_every)
    : file_(std::move(file)), said_every_(said_every) {}

void BusyWait::attach(SQLite::Database& database) {
  sqlite3_busy_handler(database.getHandle(), &BusyWait::wait, this);
}

int BusyWait::wait(void* self, int times) {
  constexpr std::chrono::milliseconds kPause{20};
  constexpr std::chrono::seconds kPatienceOfAStop{2};
  auto& busy = *static_cast<BusyWait*>(self);
  const auto now = Clock::now();
  if (times == 0) {
    busy.begin_ = now;
    busy.next_said_ = now + busy.said_every_;
  }
  if (stop_requested() && now - busy.begin_ > kPatienceOfAStop) return 0;
  if (now >= busy.next_said_) {
    busy.next_said_ += busy.said_every_;
    const std::chrono::duration<double> waited = now - busy.begin_;
    warn("another program holds " + busy.file_.string() + ", waited for it for " +
         human_duration(waited.count()));
  }
  std::this_thread::sleep_for(kPause);
  return 1;
}

}  // namespace nas
