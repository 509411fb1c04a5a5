#include "store/busy.hpp"

#include <thread>

#include "core/stop.hpp"
#include "core/temporary_folder.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

using namespace std::chrono_literals;

class BusyTest : public ::testing::Test {
 protected:
  BusyTest() {
    holder_.exec("CREATE TABLE t (x)");
    holder_.exec("BEGIN IMMEDIATE");
    busy_.attach(waiting_);
  }
  void TearDown() override { request_stop(false); }

  const TemporaryFolder temporary_;
  const fs::path file_ = temporary_.path() / "s.sqlite";
  SQLite::Database holder_{file_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE};
  BusyWait busy_{file_, 50ms};
  SQLite::Database waiting_{file_.string(), SQLite::OPEN_READWRITE};
};

TEST_F(BusyTest, ABusyFileIsWaitedForWithAWarning) {
  std::thread releases([this] {
    std::this_thread::sleep_for(300ms);
    holder_.exec("COMMIT");
  });
  ::testing::internal::CaptureStderr();
  waiting_.exec("INSERT INTO t VALUES (1)");
  const auto said = ::testing::internal::GetCapturedStderr();
  releases.join();
  EXPECT_THAT(said, HasSubstr("warning: another program holds " + file_.string()));
}

TEST_F(BusyTest, AStopEndsTheWaiting) {
  std::thread stops([] {
    std::this_thread::sleep_for(100ms);
    request_stop();
  });
  EXPECT_THROW(waiting_.exec("INSERT INTO t VALUES (1)"), SQLite::Exception);
  stops.join();
}

}  // namespace
}  // namespace nas
