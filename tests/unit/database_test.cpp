#include "store/database.hpp"

#include <cerrno>

#include <sqlite3.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "unit/forked.hpp"
#include "unit/full_disk.hpp"

namespace nas::testing {
namespace {

constexpr DatabaseKind kKind{.name = "store",
                             .application_id = 7,
                             .version = 3,
                             .schema = "CREATE TABLE things (name TEXT PRIMARY KEY)"};

class DatabaseTest : public ::testing::Test {
 protected:
  using Mode = Database::Mode;

  static void add(Database& database, const std::string& name) {
    database.transact([&] {
      auto insert = database.statement("INSERT INTO things VALUES (?)");
      insert.bind(1, name);
      insert.exec();
    });
  }
  void add(const std::string& name) const {
    auto database = open();
    add(database, name);
  }
  static int count(const Database& database) {
    return database.guarded([&] {
      auto select = database.statement("SELECT count(*) FROM things");
      select.executeStep();
      return select.getColumn(0).getInt();
    });
  }
  [[nodiscard]] Database open(Mode mode = Mode::write) const {
    return Database(file_, kKind, mode);
  }
  /// A connection past the class.
  [[nodiscard]] SQLite::Database raw() const {
    return SQLite::Database(file_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  }
  [[nodiscard]] std::string refusal(Mode mode = Mode::write) const {
    return message_of<InputError>([&] { (void)open(mode); });
  }

  const TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path() / "run";
  fs::path file_ = folder_ / "store.sqlite";

  void SetUp() override { fs::create_directory(folder_); }
};

TEST_F(DatabaseTest, ANewFileIsMadeUnderAnotherNameAndRenamed) {
  std::ofstream(folder_ / "store.sqlite.new") << "what a killed process had begun";
  std::ofstream(folder_ / "store.sqlite-wal") << "the journal of a file that is no longer there";
  add("a");
  EXPECT_EQ(count(open(Mode::read_only)), 1);
  EXPECT_FALSE(fs::exists(folder_ / "store.sqlite.new"));
}

TEST_F(DatabaseTest, AnEmptyFileIsBegunAnew) {
  { const std::ofstream empty(file_); }
  EXPECT_THAT(refusal(Mode::read_only), HasSubstr("nothing was recorded yet"));
  add("a");
  EXPECT_EQ(count(open(Mode::read_only)), 1);
}

/// So a full disk left a file whose tables could no longer be made.
TEST_F(DatabaseTest, AFileWithoutTablesIsBegunAnew) {
  raw().exec("PRAGMA journal_mode = WAL");
  ASSERT_GT(fs::file_size(file_), 0U);
  EXPECT_THAT(refusal(Mode::read_only), HasSubstr("nothing was recorded yet"));
  add("a");
  EXPECT_EQ(count(open(Mode::read_only)), 1);
}

TEST_F(DatabaseTest, OtherFilesAreRefusedAndKept) {
  raw().exec("CREATE TABLE of_somebody (x)");
  EXPECT_THAT(refusal(), HasSubstr("store.sqlite: not a store of version 3"));
  EXPECT_TRUE(raw().tableExists("of_somebody"));
  raw().exec("PRAGMA user_version = 4; PRAGMA application_id = 7");
  EXPECT_THAT(refusal(), HasSubstr("(its version is 4)"));
  raw().exec("PRAGMA user_version = 2");
  EXPECT_THAT(refusal(), HasSubstr("store.sqlite: not a store of version 3 (its version is 2)"));
  raw().exec("PRAGMA user_version = 3; PRAGMA application_id = 8");
  EXPECT_THAT(refusal(), HasSubstr("not a store of version 3"));
  fs::remove(file_);
  fs::create_directory(file_);
  EXPECT_THAT(refusal(), HasSubstr("it is no file"));
}

/// A view may never end, and a trigger does what its maker wanted.
TEST_F(DatabaseTest, NothingButTablesAndIndicesIsOpened) {
  add("a");
  raw().exec(
      "CREATE INDEX i ON things (name); CREATE UNIQUE INDEX u ON things (name);"
      "CREATE TABLE more AS SELECT * FROM things; ALTER TABLE more RENAME TO renamed; ANALYZE");
  EXPECT_EQ(count(open()), 1);
  const std::vector<std::pair<std::string, std::string>> others{
      {"CREATE VIEW endless AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) "
       "SELECT x FROM r",
       "view endless"},
      {"CREATE TRIGGER t AFTER INSERT ON things BEGIN DELETE FROM things; END", "trigger t"},
      {"PRAGMA writable_schema = ON; INSERT INTO sqlite_master VALUES "
       "('table', 'v', 'v', 0, 'CREATE VIRTUAL TABLE v USING anything')",
       "virtual table v"}};
  const auto plain = temporary_.path() / "plain.sqlite";
  fs::copy_file(file_, plain);
  for (const auto& [sql, found] : others) {
    fs::copy_file(plain, file_, fs::copy_options::overwrite_existing);
    raw().exec(sql);
    for (const auto mode : {Mode::write, Mode::read_only, Mode::immutable}) {
      EXPECT_THAT(refusal(mode), HasSubstr(file_.string() + ": holds the " + found +
                                           ", a store must hold tables and indices alone"));
    }
  }
}

TEST_F(DatabaseTest, DamagedPagesAreFoundOnOpening) {
  {
    auto database = open();
    for (int i = 0; i < 1000; ++i) add(database, std::string(100, 'x') + std::to_string(i));
  }
  std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(fs::file_size(file_) / 2 / 4096 * 4096));
  file << std::string(4096, '\x5a') << std::flush;
  for (const auto mode : {Mode::write, Mode::read_only}) {
    EXPECT_THAT(refusal(mode), AllOf(HasSubstr(file_.string() + ": "), HasSubstr("damaged")));
  }
}

/// Copies a file in the middle of a commit, in the journal mode that files of comparisons had.
TEST_F(DatabaseTest, AHalfWrittenCommitIsRolledBack) {
  add("a");
  const auto copy = temporary_.path() / "copy";
  fs::create_directory(copy);
  {
    auto writer = raw();
    writer.exec("PRAGMA journal_mode = DELETE");
    writer.exec("PRAGMA cache_size = 1");
    writer.exec("BEGIN IMMEDIATE");
    for (int i = 0; i < 200; ++i) {
      writer.exec("INSERT INTO things VALUES ('" + std::string(3000, 'y') + std::to_string(i) +
                  "')");
    }
    ASSERT_GT(fs::file_size(folder_ / "store.sqlite-journal"), 0U);
    for (const auto* name : {"store.sqlite", "store.sqlite-journal"}) {
      fs::copy(folder_ / name, copy / name);
    }
  }
  file_ = copy / "store.sqlite";
  EXPECT_THAT(refusal(Mode::read_only), HasSubstr("journal beside it"));
  auto database = open();
  EXPECT_EQ(count(database), 1);
  add(database, "b");
  EXPECT_EQ(count(database), 2);
}

TEST_F(DatabaseTest, ReadersDoNotDisturbACommitNorSeeIt) {
  auto writer = open();
  add(writer, "a");
  const auto reader = open(Mode::read_only);
  auto select = reader.statement("SELECT name FROM things");
  ASSERT_TRUE(select.executeStep());  // holds the reader's lock
  add(writer, "b");
  EXPECT_EQ(count(writer), 2);
  EXPECT_FALSE(select.executeStep());
}

TEST_F(DatabaseTest, RemovingTheLockLetsNoSecondWriterIn) {
  auto first = open();
  add(first, "a");
  fs::remove(folder_ / "store.sqlite.lock");
  EXPECT_THAT(refusal(), HasSubstr(folder_.string() + " is in use by another process"));
  EXPECT_EQ(count(open(Mode::read_only)), 1);
}

TEST_F(DatabaseTest, TheLockEndsWithItsHolder) {
  { const auto first = open(); }
  fs::remove(folder_ / "store.sqlite.lock");
  add("a");
  EXPECT_EQ(count(open()), 1);
}

TEST_F(DatabaseTest, NothingIsCommittedToAFileThatIsNoLongerThere) {
  const auto expect_refusal = [](Database& database) {
    EXPECT_THAT(message_of<MachineError>([&] { add(database, "b"); }),
                AllOf(HasSubstr("was removed, moved or replaced"), HasSubstr("is lost")));
    EXPECT_THROW(database.require_in_place(), MachineError);
  };
  {
    auto removed = open();
    add(removed, "a");
    EXPECT_NO_THROW(removed.require_in_place());
    fs::remove_all(folder_);
    expect_refusal(removed);
  }
  fs::create_directory(folder_);
  {
    auto replaced = open();
    add(replaced, "a");
    fs::rename(file_, folder_ / "other.sqlite");
    fs::copy(folder_ / "other.sqlite", file_);
    expect_refusal(replaced);
  }
  {
    auto moved = open();
    fs::rename(folder_, temporary_.path() / "elsewhere");
    expect_refusal(moved);
  }
}

TEST_F(DatabaseTest, ADiskThatCannotTakeANewFileIsNamed) {
  EXPECT_EQ(code_on_a_full_disk([this] { (void)open(); }), 75);
  EXPECT_FALSE(fs::exists(folder_ / "store.sqlite.new"));
  EXPECT_FALSE(fs::exists(file_));
}

/// SQLite calls it an error of input or output, as it does a broken disk.
TEST_F(DatabaseTest, ASpentQuotaIsNamed) {
  const auto spend = [] {
    auto* const system = sqlite3_vfs_find(nullptr);
    const auto refuse = +[](int, const void*, std::size_t, off_t) -> ssize_t {
      errno = EDQUOT;
      return -1;
    };
    for (const auto* call : {"pwrite", "pwrite64"}) {
      system->xSetSystemCall(system, call, reinterpret_cast<sqlite3_syscall_ptr>(refuse));
    }
  };
  const auto said = [](const std::function<void()>& write) {
    return in_child([&] {
      const auto text = message_of<MachineError>(write);
      return text.ends_with(": the user's quota is spent") ? 75 : 1;
    });
  };
  EXPECT_EQ(said([&] {
              spend();
              (void)open();
            }),
            75);
  EXPECT_EQ(said([&] {
              auto database = open();
              spend();
              add(database, "a");
            }),
            75);
}

TEST_F(DatabaseTest, AFinishedFileIsReadWhereNothingCanBeWritten) {
  add("a");
  fs::remove(folder_ / "store.sqlite.lock");
  const auto read_in_child = [this](Mode mode) {
    return in_child([&] {
      constexpr uid_t kNobody = 65534;  // permissions do not bind root
      if (geteuid() == 0 && setuid(kNobody) != 0) return 99;
      try {
        return static_cast<int>(count(open(mode)));
      } catch (const InputError& error) {
        return std::string(error.what()).find("left a journal") != std::string::npos ? 50 : 97;
      } catch (const std::exception&) {
        return 96;
      }
    });
  };
  fs::permissions(temporary_.path(), fs::perms(0755));
  fs::permissions(folder_, fs::perms(0555));
  EXPECT_EQ(read_in_child(Mode::read_only), 1);
  fs::permissions(folder_, fs::perms(0755));
  // What lies in a journal belongs to the file: without it, the file alone may tell a lie.
  std::ofstream(folder_ / "store.sqlite-wal") << "anything";
  fs::permissions(folder_, fs::perms(0555));
  EXPECT_EQ(read_in_child(Mode::read_only), 50);
  EXPECT_EQ(read_in_child(Mode::immutable), 1) << "of a file that is replaced it does not";
  fs::permissions(folder_, fs::perms(0755));
}

}  // namespace
}  // namespace nas::testing
