#include "store/writer_lock.hpp"

#include <cerrno>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/host.hpp"

namespace nas {

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

/// @return the descriptor of the locked file beside the store.
int lock_beside(const std::filesystem::path& store) {
  const auto folder = store.parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder)) {
    throw InputError(folder.string() + ": no such folder");
  }
  const auto file = lock_name(store);
  for (;;) {
    const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) throw InputError(file + ": cannot be written");
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
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

WriterLock::WriterLock(std::filesystem::path store)
    : store_(std::move(store)), lock_fd_(lock_beside(store_)) {
  const std::string self = "process " + std::to_string(getpid()) + " on " + host_name() + "\n";
  if (ftruncate(lock_fd_, 0) != 0 || write(lock_fd_, self.data(), self.size()) < 0) {
    close(lock_fd_);
    throw InputError(lock_name(store_) + ": cannot be written");
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
  const int fd = open(store.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  auto lock = byte_of_store();
  const bool asked = fcntl(fd, F_OFD_GETLK, &lock) == 0;
  close(fd);
  if (!asked) return std::nullopt;
  return lock.l_type != F_UNLCK;
}

bool WriterLock::store_is_in_place() const { return is_file_of_name(store_fd_, store_); }

}  // namespace nas
