#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include <SQLiteCpp/SQLiteCpp.h>

#include "store/busy.hpp"

namespace nas {

class WriterLock;

/// What an SQLite file of ours holds.
struct DatabaseKind {
  const char* name;    ///< in messages: "store"
  int application_id;  ///< SQLite's application_id; 0 = none
  int version;         ///< of the schema, SQLite's user_version
  const char* schema;  ///< statements that make its tables
};

/// SHA-256 over a row, 32 bytes: of its columns' texts, each with its length before it.
std::string row_digest(std::span<const std::string> columns);

/// An SQLite file, opened the one way in which we open them: one writer, readers beside it at any
/// moment (WAL; on a network's file system, which cannot, a rollback journal), commits that survive
/// the death of the process.
///
/// A new file is made whole under another name before it takes its own. For writing, what a killed
/// writer left half done is rolled back, and an empty file is begun anew. For reading, a file that
/// nobody writes may lie where nothing can be written; of one that is only ever replaced as a whole,
/// what lies beside it does not count.
///
/// Where another program holds the file, a writer waits for it (BusyWait). At its end a writer gives
/// pages back of a file most of which is free, moves what the write-ahead log holds into the file,
/// and warns where that cannot be done.
///
/// Errors of SQLite leave as InputError where the file is damaged or none of ours (the message
/// names it, and what to do), and as MachineError where the machine could not read or write.
class Database {
 public:
  enum class Mode {
    write,          ///< a commit survives a power cut
    write_relaxed,  ///< a power cut may undo the last commits
    read_only,
    immutable,  ///< read_only, of a file that is only ever replaced as a whole
  };
  /// @throws InputError if the file is missing (for reading), is damaged or of another kind or
  /// version, if it holds views, triggers or virtual tables, or if another process writes to it.
  Database(std::filesystem::path file, const DatabaseKind& kind, Mode mode);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

  /// Within guarded().
  [[nodiscard]] bool has_table(const char* name) const;

  /// For use within guarded().
  [[nodiscard]] SQLite::Statement statement(const std::string& sql) const {
    return {*sqlite_, sql};
  }

  /// Does `work`. SQLite's errors leave as described above.
  template <class Work>
  auto guarded(Work work) const -> decltype(work()) {
    try {
      return work();
    } catch (const SQLite::Exception& error) {
      fail(error);
    }
  }

  /// A transaction that is rolled back unless it is committed.
  class Transaction {
   public:
    explicit Transaction(Database& database);
    /// @throws MachineError also where the file was removed or replaced.
    void commit();

   private:
    Database& database_;
    SQLite::Transaction transaction_;
  };

  /// Whether a transaction is open: SQLite ends it by itself where the disk is full.
  [[nodiscard]] bool in_transaction() const;

  /// Does `write` in one transaction.
  template <class Write>
  void transact(Write write) {
    guarded([&] {
      Transaction transaction(*this);
      write();
      transaction.commit();
    });
  }

  /// Whether transactions wait until the disk has them, as at first in Mode::write; without a
  /// write-ahead log they always do.
  void wait_for_disk(bool waits);

  /// @throws MachineError if the file that is written to is no longer the one of this name, since
  /// it or its folder was removed, moved or replaced.
  void require_in_place() const;

  /// All that SQLite finds wrong with the file, a line each; empty: nothing. Cost: reads it whole.
  [[nodiscard]] std::string inconsistencies() const;

 private:
  void open_for_writing();
  void open_for_reading(Mode mode);
  void create();
  [[nodiscard]] bool is_blank() const;
  [[nodiscard]] int number(const std::string& sql) const;
  void require_kind() const;
  void require_plain_tables() const;
  [[noreturn]] void refuse_damage(const std::string& found) const;
  [[noreturn]] void fail(const SQLite::Exception& error) const;
  void give_back_pages() noexcept;
  void close_journal() noexcept;

  std::filesystem::path file_;
  DatabaseKind kind_;
  std::unique_ptr<WriterLock> lock_;  ///< goes after `sqlite_`: see WriterLock::hold_store
  BusyWait busy_;
  std::unique_ptr<SQLite::Database> sqlite_;
};

}  // namespace nas
