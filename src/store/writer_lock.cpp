#include "store/writer_lock.hpp"

#include <fstream>
#include <string>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/host.hpp"

namespace nas {

namespace {

int open_lock(const std::filesystem::path& store) {
  const auto folder = store.parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder)) {
    throw InputError(folder.string() + ": no such folder");
  }
  const auto file = store.string() + ".lock";
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) throw InputError(file + ": cannot be written");
  return fd;
}

}  // namespace

WriterLock::WriterLock(const std::filesystem::path& store) : fd_(open_lock(store)) {
  const auto file = store.string() + ".lock";
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    std::string holder;
    std::getline(std::ifstream(file), holder);
    close(fd_);
    throw InputError(store.parent_path().string() + " is in use by another process (" + holder +
                     ")");
  }
  const std::string self = "process " + std::to_string(getpid()) + " on " + host_name() + "\n";
  if (ftruncate(fd_, 0) != 0 || write(fd_, self.data(), self.size()) < 0) {
    close(fd_);
    throw InputError(file + ": cannot be written");
  }
}

WriterLock::~WriterLock() { close(fd_); }

}  // namespace nas
