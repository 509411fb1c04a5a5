#include "store/store_copy.hpp"

#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

#include <SQLiteCpp/SQLiteCpp.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "store/store.hpp"
#include "store/writer_lock.hpp"

namespace nas::testing {
namespace {

Evaluation evaluation(int i) {
  Evaluation evaluation;
  evaluation.id = "e" + std::to_string(1000 + i);
  evaluation.candidate = "c" + std::to_string(i % 7);
  evaluation.status = Status::ok;
  evaluation.reason = std::string(2000, 'x');
  return evaluation;
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path().filename());
  std::sort(files.begin(), files.end());
  return files;
}

class StoreCopyTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::size_t copied() const {
    const StoreCopy copy(file_);
    return Store(copy.file(), Store::Mode::read_only).evaluations().size();
  }
  const TemporaryFolder temporary_;
  fs::path file_ = temporary_.path() / "store.sqlite";
};

TEST_F(StoreCopyTest, HasWhatIsCommittedWhileItIsWrittenAndLeavesNothingBeside) {
  Store store(file_);
  store.add({evaluation(0)});
  const auto before = files_of(temporary_.path());
  EXPECT_EQ(copied(), 1U);
  store.add({evaluation(1)});
  EXPECT_EQ(copied(), 2U);
  EXPECT_EQ(files_of(temporary_.path()), before);
}

TEST_F(StoreCopyTest, WaitsForACommitWithoutWriteAheadLog) {
  { Store(file_).add({evaluation(0)}); }
  const auto journal = file_.string() + "-journal";
  std::ofstream(journal) << "what the pages were";
  std::jthread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    fs::resize_file(journal, 0);
  });
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(copied(), 1U);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(150));
}

TEST_F(StoreCopyTest, RollsBackWhatAKilledWriterLeft) {
  { Store(file_).add({evaluation(0)}); }
  const pid_t child = fork();
  if (child == 0) {
    SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE);
    database.exec("PRAGMA journal_mode = TRUNCATE");
    database.exec("PRAGMA cache_size = 1");  // so that pages reach the file before the commit
    database.exec("BEGIN");
    database.exec("CREATE TABLE junk (text TEXT)");
    for (int i = 0; i < 200; ++i) {
      database.exec("INSERT INTO junk VALUES ('" + std::string(5000, 'x') + "')");
    }
    database.exec("DELETE FROM evaluations");
    raise(SIGKILL);
  }
  waitpid(child, nullptr, 0);
  const auto journal = file_.string() + "-journal";
  ASSERT_GT(fs::file_size(journal), 0U);
  const auto before = fs::file_size(file_);
  EXPECT_EQ(copied(), 1U) << "as if it had never begun";
  EXPECT_EQ(fs::file_size(file_), before);
  EXPECT_GT(fs::file_size(journal), 0U) << "of the original nothing is touched";
  { Store(file_).add({evaluation(1)}); }
  EXPECT_EQ(copied(), 2U);
}

TEST_F(StoreCopyTest, FollowsJournalsThatBeginAnew) {
  {
    Store store(file_);
    for (int i = 0; i < 1500; ++i) {  // several times what a journal holds
      store.add({evaluation(i)});
      if (i % 100 == 0) {
        ASSERT_EQ(copied(), static_cast<std::size_t>(i) + 1);
      }
    }
  }
  EXPECT_EQ(copied(), 1500U) << "the writer has gone, with its journal";
  Store(file_).add({evaluation(9000)});
  EXPECT_EQ(copied(), 1501U);
}

TEST_F(StoreCopyTest, ConsistentWhileAnotherProcessWritesAsFastAsItCan) {
  { const Store store(file_); }
  const pid_t writer = fork();
  if (writer == 0) {
    {
      Store store(file_);
      for (int i = 0; i < 600; ++i) store.add({evaluation(2 * i), evaluation(2 * i + 1)});
    }
    _exit(0);
  }
  std::size_t last = 0;
  while (last < 1200) {
    const auto now = copied();  // opening it checks its pages
    EXPECT_EQ(now % 2, 0U);
    ASSERT_GE(now, last);
    last = now;
  }
  int status = 0;
  waitpid(writer, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(StoreCopyTest, NoStoreIsBadInput) { EXPECT_THROW(StoreCopy copy(file_), InputError); }

TEST_F(StoreCopyTest, AWriterIsSeenAsLongAsItLives) {
  EXPECT_FALSE(has_writer(file_).has_value()) << "no file";
  {
    const Store store(file_);
    EXPECT_EQ(has_writer(file_), true);
    EXPECT_EQ(has_writer(file_), true) << "to look changes nothing";
  }
  EXPECT_EQ(has_writer(file_), false);
}

}  // namespace
}  // namespace nas::testing
