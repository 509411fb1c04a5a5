#include "store/store_copy.hpp"

#include <chrono>
#include <fstream>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include <SQLiteCpp/SQLiteCpp.h>
#include <sys/stat.h>

#include "core/error.hpp"
#include "core/fault.hpp"
#include "store/writer_lock.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

fs::path journal_of(const fs::path& file) { return file.string() + "-wal"; }

/// @throws InputError where something that is no file has taken its place: a pipe would be waited for.
void require_files(const fs::path& store) {
  for (const auto* suffix : {"", "-wal", "-journal"}) {
    const fs::path file = store.string() + suffix;
    const auto status = fs::status(file);
    if (!fs::exists(status) || fs::is_regular_file(status)) continue;
    throw InputError(file.string() + ": is no file any more");
  }
}

/// The beginning of a journal, which changes when the journal begins anew; empty: there is none.
std::string header_of(const fs::path& journal) {
  constexpr std::size_t kHeader = 32;
  std::string header(kHeader, '\0');
  std::ifstream stream(journal, std::ios::binary);
  stream.read(header.data(), kHeader);
  return stream.gcount() == kHeader ? header : std::string();
}

/// The journal of a commit without write-ahead log: what its pages were.
fs::path rollback_of(const fs::path& file) { return file.string() + "-journal"; }

/// Whether such a commit is under way: its journal is empty before and after.
bool is_committing(const fs::path& file) {
  std::error_code none;
  const auto size = fs::file_size(rollback_of(file), none);
  return !none && size > 0;
}

/// @return false where there is no such file.
bool copied(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, failed);
  if (!failed) return true;
  if (failed == std::errc::no_such_file_or_directory && !fs::exists(from)) return false;
  throw MachineError(io_failure(from, failed.value()));
}

/// What of a file changes with its contents.
auto stamp_of(const fs::path& file) {
  struct stat found {};
  (void)stat(file.c_str(), &found);
  return std::tuple(found.st_ino, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
}

}  // namespace

StoreCopy::StoreCopy(fs::path original)
    : original_(std::move(original)), copy_(folder_.path() / original_.filename()) {
  constexpr int kTries = 50;
  constexpr std::chrono::milliseconds kBetween{20};
  if (!fs::is_regular_file(original_)) throw InputError(original_.string() + ": no such store");
  for (int i = 0; i < kTries; ++i) {
    require_files(original_);
    if (is_committing(original_) ? i > kTries / 2 && roll_back() : copy_committed()) return;
    std::this_thread::sleep_for(kBetween);
  }
  throw MachineError(original_.string() + ": changes faster than it can be copied");
}

// What has not reached the file yet is in the journal; what has, stays there until the journal
// begins anew. So file and journal belong together if the journal has not begun anew between the
// copy of the one and that of the other, however much was appended to it.
bool StoreCopy::copy_committed() const {
  const auto journal = journal_of(original_);
  const auto header = header_of(journal);
  const auto before = stamp_of(original_);
  if (!copied(original_, copy_)) throw InputError(original_.string() + ": no such store any more");
  if (header.empty() || !copied(journal, journal_of(copy_))) fs::remove(journal_of(copy_));
  return header_of(journal) == header &&
         (!header.empty() || (stamp_of(original_) == before && !is_committing(original_)));
}

/// Makes of a commit that does not end, since its writer was killed, a copy as if it had never begun:
/// whatever of it has reached the file, the journal that was there before and after has what was.
/// @return false where the journal has changed meanwhile.
bool StoreCopy::roll_back() const {
  const auto journal = rollback_of(original_);
  const auto journal_now = stamp_of(journal);
  fs::remove(journal_of(copy_));
  if (!copied(journal, rollback_of(copy_)) || !copied(original_, copy_)) return false;
  if (stamp_of(journal) != journal_now) {
    fs::remove(rollback_of(copy_));
    return false;
  }
  try {
    SQLite::Database(copy_.string(), SQLite::OPEN_READWRITE)
        .exec("SELECT count(*) FROM sqlite_master");
  } catch (const SQLite::Exception& error) {
    throw InputError(original_.string() + ": its writer was killed, and what it left cannot be " +
                     "rolled back: " + error.what());
  }
  fs::remove(rollback_of(copy_));
  return true;
}

std::string StoreCopy::of_original(std::string message) const {
  const auto copy = copy_.parent_path().string();
  const auto original = original_.parent_path().string();
  for (auto at = message.find(copy); at != std::string::npos; at = message.find(copy, at)) {
    message.replace(at, copy.size(), original);
    at += original.size();
  }
  return message;
}

bool StoreCopy::is_written() const {
  constexpr std::chrono::seconds kSilence{60};
  if (const auto writer = has_writer(original_)) return *writer;
  const auto is_fresh = [&](const fs::path& file) {
    std::error_code gone;
    const auto last = fs::last_write_time(file, gone);
    return !gone && fs::file_time_type::clock::now() - last < kSilence;
  };
  return is_fresh(original_) || is_fresh(journal_of(original_)) || is_fresh(rollback_of(original_));
}

}  // namespace nas
