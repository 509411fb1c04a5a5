#pragma once

#include <filesystem>
#include <memory>
#include <optional>

namespace nas {

/// Makes this process the only writer of a store while it lives, by two locks: on a file beside the
/// store, STORE.lock, which is there before the store is and names the holder; and on the store
/// itself, so that a second writer is refused even where the first file was removed. The kernel
/// drops both when the process ends, however it ends.
///
/// On a file system without flock(), which is warned of, a file STORE.held stands for the first: it
/// names the holder, who touches it, and is taken over where that process is gone, or from another
/// machine after a minute of silence. One without fcntl's locks either (Lustre without -o flock) is
/// refused: SQLite cannot do without them.
class WriterLock {
 public:
  /// Locks the file beside the store.
  /// @throws InputError if the store's folder is missing, the lock cannot be written, is a link or
  /// has another name (what it leads to stays as it is), another process holds it (the message
  /// names its process id and host), or the file system has not the locks that SQLite needs.
  explicit WriterLock(std::filesystem::path store);
  ~WriterLock();
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

  /// Locks the store itself, which exists by now: one byte that SQLite does not lock. Must outlive
  /// every connection to the store: closing a file drops all locks that POSIX knows of it in this
  /// process, SQLite's too.
  /// @throws InputError if another process holds it.
  void hold_store();

  /// Whether the store that is held, if one is yet, is still the file of this name.
  [[nodiscard]] bool store_is_in_place() const;

 private:
  class Held;

  std::filesystem::path store_;
  int lock_fd_ = -1;
  std::unique_ptr<Held> held_{};
  int store_fd_ = -1;
};

/// Whether a process holds a store for writing, on this machine or on another one that shares its
/// files; nothing where the file system has no such locks. Not while this process has the store
/// open: closing a file drops all locks that POSIX knows of it in this process, SQLite's too.
std::optional<bool> has_writer(const std::filesystem::path& store);

}  // namespace nas
