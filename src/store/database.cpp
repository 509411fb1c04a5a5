#include "store/database.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include <sqlite3.h>
#include <sys/vfs.h>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/hash.hpp"
#include "core/stop.hpp"
#include "core/warning.hpp"
#include "store/writer_lock.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

constexpr int kBusyMilliseconds = 10000;

// Above this size a check of all pages on opening would be felt (about 100 ms for 64 MiB).
constexpr std::uintmax_t kLargestChecked = std::uintmax_t{32} << 20U;

constexpr int kPatienceMilliseconds = 2000;  // at the end, for readers that do not stay
constexpr int kFewPages = 256;               // so small a file stays as it is

fs::path beside(const fs::path& file, const char* suffix) { return file.string() + suffix; }

/// @throws MachineError where the machine does not give all of a file.
void require_readable(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> bytes(std::size_t{1} << 20U);
  while (stream.read(bytes.data(), std::ssize(bytes))) continue;
  if (stream.bad() || !stream.eof()) throw MachineError(io_failure(file, EIO));
}

/// What has not reached a file yet lies in one of these.
constexpr std::array<const char*, 2> kJournals{"-wal", "-journal"};

/// What the system said last of a store's file and of its journal, as errno; 0 where all went well.
/// @param connection  null where it could not be opened.
std::array<int, 3> system_errors(sqlite3* connection) {
  std::array<int, 3> errors{sqlite3_system_errno(connection)};
  // What a commit or a read failed with, only the open file remembers.
  for (std::size_t i = 1; i < errors.size(); ++i) {
    const int which = i == 1 ? SQLITE_FCNTL_FILE_POINTER : SQLITE_FCNTL_JOURNAL_POINTER;
    sqlite3_file* open = nullptr;
    if (connection != nullptr) sqlite3_file_control(connection, "main", which, &open);
    // A journal that is not open, or lies in memory.
    if (open == nullptr || open->pMethods == nullptr) continue;
    if (open->pMethods->xFileControl == nullptr) continue;
    open->pMethods->xFileControl(open, SQLITE_FCNTL_LAST_ERRNO, &errors[i]);
  }
  return errors;
}

/// Why a file or its journal cannot grow, as errno says it; 0: something else has failed.
/// @param connection  null where it could not be opened.
int lack_of_space(const fs::path& file, sqlite3* connection) {
  const auto errors = system_errors(connection);
  const auto lack = std::find_if(errors.begin(), errors.end(), is_lack_of_space);
  if (lack != errors.end()) return *lack;
  constexpr std::uintmax_t kOneWrite = 65536;
  std::error_code unknown;
  return fs::space(fs::absolute(file).parent_path(), unknown).available < kOneWrite ? ENOSPC : 0;
}

/// Whether the machine did not give what was read last, which SQLite takes for damage.
bool read_failed(sqlite3* connection) {
  const auto errors = system_errors(connection);
  return std::any_of(errors.begin(), errors.end(),
                     [](int error) { return error == EIO || error == ENXIO || error == ERANGE; });
}

bool has_journal(const fs::path& file) {
  for (const auto* suffix : kJournals) {
    std::error_code missing;
    const auto size = fs::file_size(beside(file, suffix), missing);
    if (!missing && size > 0) return true;
  }
  return false;
}

void remove_with_journals(const fs::path& file) {
  fs::remove(file);
  for (const auto* suffix : {"-wal", "-journal", "-shm"}) fs::remove(beside(file, suffix));
}

/// Kinds of file systems that machines share, by the numbers of statfs(2): SQLite's write-ahead log
/// needs memory that all who have the file open share.
constexpr std::array<std::uint32_t, 11> kShared{
    0x6969,      // NFS
    0x517b,      // SMB
    0xff534d42,  // CIFS
    0xfe534d42,  // SMB 2
    0x65735546,  // FUSE, by which many others come
    0x0bd00bd0,  // Lustre
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
    0x00c36400,  // Ceph
    0x01021997,  // 9P
    0xaad7aaea,  // PanFS
};

bool is_shared(const fs::path& file) {
  const auto folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  struct statfs system {};
  return statfs(folder.c_str(), &system) == 0 &&
         std::find(kShared.begin(), kShared.end(), static_cast<std::uint32_t>(system.f_type)) !=
             kShared.end();
}

void warn_of_shared(const fs::path& file) {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  warn(
      file.string() +
      " is on a file system that machines share: readers and the writer wait for each other, since "
      "SQLite's write-ahead log does not work there");
}

/// How commits become durable on a file's disk.
const char* set_journal(const fs::path& file) {
  return is_shared(file) ? "PRAGMA journal_mode = TRUNCATE" : "PRAGMA journal_mode = WAL";
}

/// A path as SQLite's URI.
std::string uri(const fs::path& file) {
  std::string text = "file:";
  for (const char c : fs::absolute(file).string()) {
    switch (c) {
      case '%':
        text += "%25";
        break;
      case '?':
        text += "%3f";
        break;
      case '#':
        text += "%23";
        break;
      default:
        text += c;
    }
  }
  return text;
}

}  // namespace

std::string row_digest(std::span<const std::string> columns) {
  Sha256 hash;
  for (const auto& column : columns) {
    hash.update(std::to_string(column.size()) + ":");
    hash.update(column);
  }
  return hash.bytes();
}

Database::Database(fs::path file, const DatabaseKind& kind, Mode mode)
    : file_(std::move(file)), kind_(kind), busy_(file_) {
  if (fs::exists(file_) && !fs::is_regular_file(file_)) {
    throw InputError(file_.string() + ": not a readable " + kind_.name + ": it is no file");
  }
  const bool reads = mode == Mode::read_only || mode == Mode::immutable;
  guarded([&] {
    if (reads) {
      open_for_reading(mode);
    } else {
      open_for_writing();
    }
    // Expressions in a schema of unknown origin may call harmless functions only.
    sqlite_->exec("PRAGMA trusted_schema = OFF");
    require_kind();
    if (reads) return;
    sqlite_->exec(set_journal(file_));
    if (is_shared(file_)) warn_of_shared(file_);
    sqlite_->exec(mode == Mode::write ? "PRAGMA synchronous = FULL"
                                      : "PRAGMA synchronous = NORMAL");
  });
}

void Database::wait_for_disk(bool waits) {
  if (is_shared(file_)) return;
  guarded(
      [&] { sqlite_->exec(waits ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL"); });
}

Database::~Database() {
  if (!lock_ || !sqlite_) return;
  give_back_pages();
  close_journal();
}

/// Makes the file small again where more than a quarter of it is free; it stays as it is where that
/// fails, or where the disk has no room for what is kept, twice.
void Database::give_back_pages() noexcept {
  try {
    const auto pages = number("PRAGMA page_count");
    const auto kept = pages - number("PRAGMA freelist_count");
    if (in_transaction() || pages < kFewPages || 4 * kept > 3 * pages) return;
    const auto bytes =
        static_cast<std::uintmax_t>(kept) * static_cast<std::uintmax_t>(number("PRAGMA page_size"));
    if (fs::space(fs::absolute(file_).parent_path()).available < 3 * bytes) return;
    require_in_place();
    sqlite3_busy_timeout(sqlite_->getHandle(), kPatienceMilliseconds);
    sqlite_->exec("VACUUM");
  } catch (const std::exception&) {  // nothing is lost
  }
}

/// SQLite itself tries so when the file is closed, and does not tell what came of it.
void Database::close_journal() noexcept {
  try {
    sqlite3* const connection = sqlite_->getHandle();
    sqlite3_busy_timeout(connection, kPatienceMilliseconds);
    int pages = 0;
    const int code =
        sqlite3_wal_checkpoint_v2(connection, "main", SQLITE_CHECKPOINT_FULL, &pages, nullptr);
    if (code == SQLITE_OK || !has_journal(file_)) return;
    warn("part of the record is in " + beside(file_, "-wal").string() + " alone, since " +
         (code == SQLITE_BUSY ? "another program has been reading " + file_.string() + " all along"
                              : std::string(sqlite3_errstr(code))) +
         ": what copies one copies both, or repeats the command first once that has ended");
  } catch (const std::exception&) {  // nothing is lost
  }
}

bool Database::has_table(const char* name) const {
  auto named = statement("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?");
  named.bind(1, name);
  return named.executeStep();
}

void Database::open_for_writing() {
  lock_ = std::make_unique<WriterLock>(file_);
  const auto open = [this] {
    sqlite_ = std::make_unique<SQLite::Database>(file_.string(), SQLite::OPEN_READWRITE);
    busy_.attach(*sqlite_);
  };
  if (fs::exists(file_)) {
    open();
    if (!is_blank()) {
      lock_->hold_store();
      return;
    }
    sqlite_.reset();
  }
  create();
  lock_->hold_store();
  open();
}

void Database::open_for_reading(Mode mode) {
  if (!fs::exists(file_)) throw InputError(file_.string() + ": no such " + kind_.name);
  const auto open = [this](const std::string& name, int flags) {
    sqlite_ =
        std::make_unique<SQLite::Database>(name, SQLite::OPEN_READONLY | flags, kBusyMilliseconds);
    (void)number("PRAGMA schema_version");
  };
  const auto open_immutable = [&] { open(uri(file_) + "?immutable=1", SQLite::OPEN_URI); };
  if (mode == Mode::immutable) return open_immutable();
  try {
    open(file_.string(), 0);
  } catch (const SQLite::Exception& error) {
    const int code = error.getErrorCode();
    if (code != SQLITE_CANTOPEN && code != SQLITE_READONLY) throw;
    if (has_journal(file_)) {
      throw InputError(file_.string() +
                       ": a writer was killed and left a journal beside it, which must be rolled "
                       "back first: continue what wrote it, or copy the folder to where files can "
                       "be written (" +
                       error.what() + ")");
    }
    // Even a reader writes beside the file, unless the file is known not to change.
    open_immutable();
  }
}

int Database::number(const std::string& sql) const { return sqlite_->execAndGet(sql).getInt(); }

bool Database::is_blank() const {
  return number("PRAGMA user_version") == 0 && number("SELECT count(*) FROM sqlite_master") == 0;
}

void Database::create() {
  const auto unfinished = beside(file_, ".new");
  remove_with_journals(unfinished);
  try {
    // Where it fails, the connection says why: see fail().
    sqlite_ = std::make_unique<SQLite::Database>(
        unfinished.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, kBusyMilliseconds);
    // By a rollback journal, whose commit reaches the file or fails. A write-ahead log would come to
    // the file when it is closed, and what fails then is not said: on a full disk half a file.
    SQLite::Transaction transaction(*sqlite_);
    sqlite_->exec(kind_.schema);
    sqlite_->exec("PRAGMA application_id = " + std::to_string(kind_.application_id));
    sqlite_->exec("PRAGMA user_version = " + std::to_string(kind_.version));
    transaction.commit();
  } catch (const SQLite::Exception&) {
    remove_with_journals(unfinished);
    throw;
  }
  sqlite_.reset();
  // A journal of a file that was there before must not be applied to this one.
  remove_with_journals(file_);
  fs::rename(unfinished, file_);
  sync_to_disk(fs::absolute(file_).parent_path());
}

void Database::require_kind() const {
  const int version = number("PRAGMA user_version");
  const bool ours = number("PRAGMA application_id") == kind_.application_id;
  if (!ours || version != kind_.version) {
    throw InputError(file_.string() + ": not a " + kind_.name + " of version " +
                     std::to_string(kind_.version) +
                     (is_blank() ? " (it is empty: nothing was recorded yet)"
                      : ours     ? " (its version is " + std::to_string(version) + ")"
                                 : ""));
  }
  require_plain_tables();
  if (fs::file_size(file_) > kLargestChecked) return;
  if (const auto found = inconsistencies(); !found.empty()) refuse_damage(found);
}

// These are the forms in which SQLite begins the texts of tables and indices.
void Database::require_plain_tables() const {
  auto other = statement(
      "SELECT CASE WHEN sql LIKE 'CREATE VIRTUAL %' THEN 'virtual table' ELSE type END, "
      "substr(name, 1, 80) FROM sqlite_master WHERE "
      "(type = 'table' AND sql LIKE 'CREATE TABLE %' OR type = 'index' AND (sql IS NULL OR "
      "sql LIKE 'CREATE INDEX %' OR sql LIKE 'CREATE UNIQUE INDEX %')) IS NOT TRUE");
  if (!other.executeStep()) return;
  throw InputError(file_.string() + ": holds the " + other.getColumn(0).getString() + " " +
                   other.getColumn(1).getString() + ", a " + kind_.name +
                   " must hold tables and indices alone: what else there is would be computed when "
                   "it is read or written, perhaps without end");
}

void Database::refuse_damage(const std::string& found) const {
  throw InputError(file_.string() + ": is damaged, " + found.substr(0, found.find('\n')) +
                   "; put a copy in its place, or take what can be read out of it by: sqlite3 " +
                   file_.string() + " .recover");
}

std::string Database::inconsistencies() const {
  const auto check = [this] {
    auto lines = statement("PRAGMA quick_check");
    std::string found;
    while (lines.executeStep()) {
      auto line = lines.getColumn(0).getString();
      if (line == "ok") continue;
      if (line.starts_with("*** in database")) line.erase(0, line.find('\n') + 1);
      found += line + "\n";
    }
    return found;
  };
  return guarded([&] {
    auto found = check();
    if (found.empty()) return found;
    // SQLite takes a page that the machine did not give for a damaged one.
    require_readable(file_);
    return check();
  });
}

void Database::require_in_place() const {
  if (!lock_ || lock_->store_is_in_place()) return;
  throw MachineError(file_.string() +
                     " was removed, moved or replaced, perhaps with its folder, while it was being "
                     "written to: what it held is no longer there, and what has been found since "
                     "is lost; if the folder was moved, the same command continues with it there");
}

Database::Transaction::Transaction(Database& database)
    : database_(database),
      // At once for writing: a transaction that reads first and then cannot write fails without
      // waiting.
      transaction_(*database.sqlite_, SQLite::TransactionBehavior::IMMEDIATE) {}

bool Database::in_transaction() const { return sqlite3_get_autocommit(sqlite_->getHandle()) == 0; }

void Database::Transaction::commit() {
  database_.require_in_place();
  transaction_.commit();
}

void Database::fail(const SQLite::Exception& error) const {
  const std::string what = error.what();
  sqlite3* const connection = sqlite_ ? sqlite_->getHandle() : nullptr;
  switch (error.getErrorCode()) {
    case SQLITE_FULL:
      throw MachineError(io_failure(file_, ENOSPC));
    case SQLITE_BUSY:
      if (stop_requested()) throw StopRequested();  // which is what ended the waiting
      throw MachineError(file_.string() + ": another program holds it (" + what + ")");
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_NOMEM:
    case SQLITE_PERM:
      require_in_place();
      if (const int lack = lack_of_space(file_, connection); lack != 0) {
        throw MachineError(io_failure(file_, lack));
      }
      throw MachineError(file_.string() + ": cannot be written or read: " + what);
    case SQLITE_CORRUPT:
      if (read_failed(connection)) throw MachineError(io_failure(file_, EIO));
      require_readable(file_);
      refuse_damage(what);
    case SQLITE_NOTADB:
    case SQLITE_ERROR:  // a table or column is missing
      throw InputError(file_.string() + ": not a readable " + kind_.name + ": " + what);
    default:
      throw std::logic_error(file_.string() + ": " + what);
  }
}

}  // namespace nas
