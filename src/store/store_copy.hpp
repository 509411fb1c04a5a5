#pragma once

#include <filesystem>
#include <string>

#include <sys/stat.h>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"

namespace nas {

/// A copy of an SQLite file (WAL, or of a shared file system) that another process may be writing,
/// on this machine or on another one that shares its files: for repeated reading.
/// What a killed writer left half done is rolled back in the copy. Of the original nothing
/// is locked and nothing is left beside it, as SQLite's own readers do; between machines these
/// cannot even read, since they share memory with the writer. Not for the process that writes it:
/// closing a file drops all locks that POSIX knows of it in this process, SQLite's too.
class StoreCopy {
 public:
  /// Copies nothing yet. @throws InputError if there is no such file.
  explicit StoreCopy(std::filesystem::path original);

  /// Copies what is committed by now, the file itself only where it may have changed.
  /// Cost: of a call that finds nothing new, a few system calls.
  /// @return whether there may be anything new since the last call.
  /// @throws InputError if the file is gone, MachineError if it cannot be copied.
  bool update();

  [[nodiscard]] const std::filesystem::path& original() const { return original_; }
  /// The copy; to be opened read-only, and closed before the next update.
  [[nodiscard]] const std::filesystem::path& file() const { return copy_; }
  /// Calls what reads the copy.
  /// @throws InputError that names the original where `read_copy` throws one that names the copy.
  template <class Read>
  auto read(Read read_copy) const {
    try {
      return read_copy();
    } catch (const InputError& error) {
      throw InputError(of_original(error.what()));
    }
  }
  /// Whether a process writes the original: as its locks say, and on a file system without them
  /// whether it was written to within the last minute before update().
  [[nodiscard]] bool is_written() const;
  /// Seconds since the original was written to, by this machine's clock and its files'.
  [[nodiscard]] double age() const;

 private:
  /// What of a file changes with its contents.
  struct Stamp {
    ino_t inode = 0;
    off_t size = 0;
    timespec changed{};
    bool operator==(const Stamp& other) const;
  };
  static Stamp stamp_of(const std::filesystem::path& file);
  /// A message with the original's folder in place of the copy's.
  [[nodiscard]] std::string of_original(std::string message) const;
  bool roll_back();

  std::filesystem::path original_;
  TemporaryFolder folder_;
  std::filesystem::path copy_;
  std::string header_;  ///< of the journal that was copied; empty: there was none
  Stamp file_, journal_;
  Stamp rolled_back_;  ///< the journal of a commit that does not end
};

}  // namespace nas
