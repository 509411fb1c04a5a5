#pragma once

#include <filesystem>

namespace nas {

/// Holds an exclusive lock on a file beside a store, STORE.lock, while it lives. The kernel drops
/// it when the process ends, however it ends.
class WriterLock {
 public:
  /// @throws InputError if the store's folder is missing, the lock cannot be written, or another
  /// process holds it (the message names its process id and host).
  explicit WriterLock(const std::filesystem::path& store);
  ~WriterLock();
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  int fd_;
};

}  // namespace nas
