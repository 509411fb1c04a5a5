#include "store/writer_lock.hpp"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/host.hpp"
#include "core/warning.hpp"

namespace nas {

namespace fs = std::filesystem;

namespace {

std::string lock_name(const std::filesystem::path& store) { return store.string() + ".lock"; }

/// Whether an open file is the one of this name.
bool is_file_of_name(int fd, const std::filesystem::path& name) {
  struct stat open {};
  struct stat named {};
  return fstat(fd, &open) == 0 && stat(name.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

/// The byte of a store that its writer locks. SQLite locks 512 bytes from 2^30 on. flock() would do
/// on a local disk, but NFS makes of it a lock of all bytes, those of SQLite among them.
struct flock byte_of_store() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = (off_t{1} << 30) + 4096;
  lock.l_len = 1;
  return lock;
}

[[noreturn]] void refuse(const std::filesystem::path& store, const std::string& holder) {
  throw InputError(store.parent_path().string() + " is in use by another process (" + holder + ")");
}

/// Whether an error of a lock says that the file system has none.
bool has_no_locks(int error) {
  return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP || error == EINVAL;
}

/// @param fd  of a file beside the store.
/// @throws InputError if the file system has not the locks that SQLite needs.
void require_locks_of_sqlite(int fd, const std::filesystem::path& store) {
  auto lock = byte_of_store();
  if (fcntl(fd, F_SETLK, &lock) == 0) return;
  const int error = errno;
  if (!has_no_locks(error)) return;  // over NFS, the lock of flock() is in its way
  throw InputError(store.parent_path().string() + " is on a file system without locks (fcntl: " +
                   std::generic_category().message(error) + "), which " +
                   store.filename().string() +
                   " must have: mount it with them (Lustre: -o flock), or take a folder on another "
                   "file system");
}

/// @return the descriptor of the file beside the store, locked where the file system has flock().
/// @throws InputError if it is a link, which is not followed, or has another name.
int lock_beside(const std::filesystem::path& store, bool& locked) {
  const auto folder = store.parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder)) {
    throw InputError(folder.string() + ": no such folder");
  }
  const auto file = lock_name(store);
  for (;;) {
    const int fd = open_own_file(file, O_RDWR, 0644);
    locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!locked && has_no_locks(errno)) return fd;
    if (!locked) {
      std::string holder;
      std::getline(std::ifstream(file), holder);
      close(fd);
      refuse(store, holder);
    }
    // Between the two calls the file may have been removed, and another process may hold the next
    // one of this name.
    if (is_file_of_name(fd, file)) return fd;
    close(fd);
  }
}

}  // namespace

/// A file that is there while its holder lives, and is touched by it: for file systems without
/// flock().
class WriterLock::Held {
 public:
  /// @param now  of the file system's clock.
  Held(const std::filesystem::path& store, const std::string& self, fs::file_time_type now)
      : file_(store.string() + ".held"), self_(self.substr(0, self.find('\n'))) {
    for (;;) {
      const int fd = open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
      if (fd >= 0) {
        const bool written = write(fd, self.data(), self.size()) == std::ssize(self);
        close(fd);
        if (written) break;
        fs::remove(file_);
        throw InputError(file_.string() + ": cannot be written");
      }
      if (errno != EEXIST) throw InputError(file_.string() + ": cannot be written");
      if (!is_stale(self, now)) {
        if (!fs::exists(file_)) continue;  // its holder has just ended
        refuse(store, holder());
      }
      const Taking only(*this, store, now);
      // The process that took it first has replaced the file.
      if (is_stale(self, now)) fs::remove(file_);
    }
    beat_ = std::jthread([this](const std::stop_token& stop) {
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any woken;
      while (!woken.wait_for(lock, stop, kBeat, [&] { return stop.stop_requested(); })) {
        utimensat(AT_FDCWD, file_.c_str(), nullptr, 0);
      }
    });
  }
  ~Held() {
    beat_ = {};
    if (holder() != self_) return;  // it was silent for so long that another has taken over
    std::error_code gone;
    fs::remove(file_, gone);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  static constexpr std::chrono::seconds kBeat{5};
  static constexpr std::chrono::seconds kSilence{60};

  /// While it lives, no other process takes over the file of one that has died: of two that find it
  /// stale, the second would else remove that of the first.
  class Taking {
   public:
    Taking(const Held& held, const std::filesystem::path& store, fs::file_time_type now)
        : file_(held.file_.string() + ".taken") {
      std::error_code gone;
      const auto begun = fs::last_write_time(file_, gone);
      if (!gone && now - begun > kSilence) fs::remove(file_, gone);  // it died meanwhile
      const int fd = open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
      if (fd < 0) refuse(store, "which takes it over at this moment");
      close(fd);
    }
    ~Taking() {
      std::error_code gone;
      fs::remove(file_, gone);
    }
    Taking(const Taking&) = delete;
    Taking& operator=(const Taking&) = delete;

   private:
    fs::path file_;
  };

  [[nodiscard]] std::string holder() const {
    std::string text;
    std::getline(std::ifstream(file_), text);
    return text;
  }

  /// Whether its holder has died: on this machine as the system says, else by its silence.
  [[nodiscard]] bool is_stale(const std::string& self, fs::file_time_type now) const {
    std::error_code gone;
    const auto touched = fs::last_write_time(file_, gone);
    if (gone) return false;
    std::istringstream theirs(holder());
    std::istringstream ours(self);
    std::string word;
    std::string there;
    std::string here;
    long process = 0;
    theirs >> word >> process >> word >> there;
    ours >> word >> word >> word >> here;
    // One of this process's number that is silent had it before: in a container it may be the same
    // each time.
    if (there == here && process > 0 && process != getpid()) {
      return kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH;
    }
    return now - touched > kSilence;
  }

  fs::path file_;
  std::string self_;
  std::jthread beat_;
};

WriterLock::WriterLock(std::filesystem::path store) : store_(std::move(store)) {
  bool locked = false;
  lock_fd_ = lock_beside(store_, locked);
  try {
    require_locks_of_sqlite(lock_fd_, store_);
    const std::string self = "process " + std::to_string(getpid()) + " on " + host_name() + "\n";
    if (ftruncate(lock_fd_, 0) != 0 || write(lock_fd_, self.data(), self.size()) < 0) {
      throw InputError(lock_name(store_) + ": cannot be written");
    }
    if (locked) return;
    held_ = std::make_unique<Held>(store_, self, fs::last_write_time(lock_name(store_)));
    warn(store_.parent_path().string() +
         " is on a file system without flock: a second process is kept out by the file " +
         store_.filename().string() +
         ".held alone, which counts for a minute after its last touch");
  } catch (...) {
    close(lock_fd_);
    throw;
  }
}

WriterLock::~WriterLock() {
  if (store_fd_ >= 0) close(store_fd_);
  close(lock_fd_);
}

void WriterLock::hold_store() {
  store_fd_ = open(store_.c_str(), O_RDWR | O_CLOEXEC);
  if (store_fd_ < 0) throw InputError(store_.string() + ": cannot be written");
  auto lock = byte_of_store();
  // A file system without such locks leaves the one beside the store.
  if (fcntl(store_fd_, F_OFD_SETLK, &lock) != 0 && (errno == EAGAIN || errno == EACCES)) {
    refuse(store_, "which lost its " + lock_name(store_));
  }
}

std::optional<bool> has_writer(const std::filesystem::path& store) {
  const int fd = open(store.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // it may be a pipe by now
  if (fd < 0) return std::nullopt;
  auto lock = byte_of_store();
  const bool asked = fcntl(fd, F_OFD_GETLK, &lock) == 0;
  close(fd);
  if (!asked) return std::nullopt;
  return lock.l_type != F_UNLCK;
}

bool WriterLock::store_is_in_place() const {
  return store_fd_ < 0 || is_file_of_name(store_fd_, store_);
}

}  // namespace nas
