// Stores on file systems that machines share: without locks, or without memory in common.

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdarg>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/host.hpp"
#include "core/temporary_folder.hpp"
#include "core/warning.hpp"
#include "prelude.hpp"
#include "store/database.hpp"
#include "store/writer_lock.hpp"

namespace {

// What the system says in place of the truth.
int lock_error = 0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): of the test
int sqlite_lock_error =
    0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): of the test
unsigned system_type =
    0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): of the test

}  // namespace

extern "C" int flock(int /*file*/, int /*operation*/) noexcept {
  errno = lock_error;
  return lock_error == 0 ? 0 : -1;
}

extern "C" int fcntl(int file, int command, ...) {
  if (command == F_SETLK && sqlite_lock_error != 0) {
    errno = sqlite_lock_error;
    return -1;
  }
  std::va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return static_cast<int>(syscall(SYS_fcntl, file, command, argument));
}

extern "C" int statfs(const char* /*file*/, struct statfs* system) noexcept {
  system->f_type = static_cast<decltype(system->f_type)>(system_type);
  return 0;
}

namespace nas::testing {
namespace {

constexpr DatabaseKind kKind{.name = "store",
                             .application_id = 7,
                             .version = 1,
                             .schema = "CREATE TABLE things (name TEXT PRIMARY KEY)"};

class SharedFilesTest : public ::testing::Test {
 protected:
  ~SharedFilesTest() override { lock_error = sqlite_lock_error = 0; }

  [[nodiscard]] std::string refusal() const {
    return message_of<InputError>([this] { const WriterLock lock(file_); });
  }
  [[nodiscard]] fs::path held() const { return file_.string() + ".held"; }
  void hold(const std::string& holder, std::chrono::seconds ago) const {
    std::ofstream(held()) << holder << '\n';
    fs::last_write_time(held(), fs::file_time_type::clock::now() - ago);
  }

  const TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  fs::path file_ = folder_ / "store.sqlite";
  Texts warnings_;
  WarningListener listener_{[this](const std::string& text) { warnings_.push_back(text); }};
};

TEST_F(SharedFilesTest, WithoutFlockAFileThatIsTouchedStandsForIt) {
  for (const int error : {ENOLCK, ENOSYS, EOPNOTSUPP}) {
    lock_error = error;
    warnings_.clear();
    {
      const WriterLock lock(file_);
      EXPECT_THAT(warnings_, ElementsAre(HasSubstr(folder_.string() +
                                                   " is on a file system without flock: ")));
      EXPECT_TRUE(fs::exists(held()));
      EXPECT_THAT(refusal(), HasSubstr("is in use by another process (process " +
                                       std::to_string(getpid()) + " on " + host_name() + ")"));
    }
    EXPECT_FALSE(fs::exists(held()));
  }
}

/// Lustre without -o flock: SQLite would fail, or wait for ever for one that nobody holds.
TEST_F(SharedFilesTest, WithoutTheLocksOfSqliteNothingIsBegun) {
  for (const int error : {ENOLCK, ENOSYS, EOPNOTSUPP}) {
    lock_error = sqlite_lock_error = error;
    EXPECT_THAT(
        message_of<InputError>([&] { const Database store(file_, kKind, Database::Mode::write); }),
        StartsWith(folder_.string() + " is on a file system without locks (fcntl: " +
                   std::generic_category().message(error) +
                   "), which store.sqlite must have: mount it with them (Lustre: -o flock), or"));
    EXPECT_FALSE(fs::exists(file_));
    EXPECT_FALSE(fs::exists(held()));
  }
}

TEST_F(SharedFilesTest, ALockThatSomebodyHoldsIsNoLackOfLocks) {
  lock_error = EWOULDBLOCK;
  EXPECT_THAT(refusal(), HasSubstr("is in use by another process"));
  EXPECT_FALSE(fs::exists(held()));
  lock_error = 0;
  sqlite_lock_error = EAGAIN;  // by flock's own lock, over NFS
  EXPECT_EQ(refusal(), "nothing was thrown");
}

TEST_F(SharedFilesTest, WhoHasDiedHoldsNothing) {
  lock_error = ENOLCK;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  hold("process " + std::to_string(child) + " on " + host_name(), std::chrono::seconds(1));
  EXPECT_EQ(refusal(), "nothing was thrown");
  hold("process 1 on elsewhere", std::chrono::seconds(10));
  EXPECT_THAT(refusal(), HasSubstr("(process 1 on elsewhere)"));
  hold("process 1 on elsewhere", std::chrono::seconds(100));
  EXPECT_EQ(refusal(), "nothing was thrown");
}

// In a container a process may have the same number each time that it is started.
TEST_F(SharedFilesTest, WhoHasDiedWithTheNumberOfThisProcessHoldsNothing) {
  lock_error = ENOLCK;
  const auto self = "process " + std::to_string(getpid()) + " on " + host_name();
  hold(self, std::chrono::seconds(10));
  EXPECT_THAT(refusal(), HasSubstr("(" + self + ")"));
  hold(self, std::chrono::seconds(100));
  EXPECT_EQ(refusal(), "nothing was thrown");
}

TEST_F(SharedFilesTest, WhatAnotherHasTakenOverStaysItsOwn) {
  lock_error = ENOLCK;
  {
    const WriterLock lock(file_);
    hold("process 1 on elsewhere", std::chrono::seconds(1));
  }
  EXPECT_THAT(refusal(), HasSubstr("(process 1 on elsewhere)"));
}

TEST_F(SharedFilesTest, OfManyWhoTakeOverOneDoes) {
  lock_error = ENOLCK;
  constexpr int kTakers = 6;
  for (int round = 0; round < 30; ++round) {
    hold("process 1 on elsewhere", std::chrono::seconds(100));
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    std::vector<pid_t> takers;
    for (int i = 0; i < kTakers; ++i) {
      takers.push_back(fork());
      if (takers.back() != 0) continue;
      std::unique_ptr<WriterLock> lock;
      char holds = 1;
      try {
        lock = std::make_unique<WriterLock>(file_);
      } catch (const InputError&) {
        holds = 0;
      }
      [[maybe_unused]] const auto told = write(ends[1], &holds, 1);
      for (;;) pause();  // so that nobody finds it dead
    }
    int holders = 0;
    for (int i = 0; i < kTakers; ++i) {
      char holds = 0;
      ASSERT_EQ(read(ends[0], &holds, 1), 1);
      holders += holds;
    }
    for (const auto taker : takers) {
      kill(taker, SIGKILL);
      waitpid(taker, nullptr, 0);
    }
    for (const int end : ends) close(end);
    ASSERT_EQ(holders, 1) << "round " << round;
    fs::remove(held());
  }
  std::ofstream(held().string() + ".taken") << "";
  hold("process 1 on elsewhere", std::chrono::seconds(100));
  EXPECT_THAT(refusal(), HasSubstr("which takes it over at this moment"));
  fs::last_write_time(held().string() + ".taken",
                      fs::file_time_type::clock::now() - std::chrono::seconds(100));
  EXPECT_EQ(refusal(), "nothing was thrown") << "that taker has died";
}

TEST_F(SharedFilesTest, OnANetworksFileSystemThereIsNoWriteAheadLog) {
  const auto journal = [&](unsigned type) {
    system_type = type;
    const Database database(file_, kKind, Database::Mode::write);
    return database.guarded([&] {
      auto mode = database.statement("PRAGMA journal_mode");
      mode.executeStep();
      return mode.getColumn(0).getString();
    });
  };
  EXPECT_EQ(journal(0xef53), "wal") << "ext4";
  EXPECT_THAT(warnings_, ElementsAre());
  EXPECT_EQ(journal(0x6969), "truncate") << "NFS";
  EXPECT_EQ(journal(0xff534d42), "truncate") << "CIFS";
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("is on a file system that machines share")));
  EXPECT_EQ(journal(0x01021994), "wal") << "tmpfs: it may be moved";
}

}  // namespace
}  // namespace nas::testing
