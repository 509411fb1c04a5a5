#pragma once

#include <filesystem>
#include <string>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"

namespace nas {

/// A copy of what is committed in an SQLite file (WAL, or of a shared file system) that another process may be
/// writing, on this machine or on another one that shares its files.
/// What a killed writer left half done is rolled back in the copy. Of the original nothing
/// is locked and nothing is left beside it, as SQLite's own readers do; between machines these
/// cannot even read, since they share memory with the writer. Not for the process that writes it:
/// closing a file drops all locks that POSIX knows of it in this process, SQLite's too.
class StoreCopy {
 public:
  /// @throws InputError if there is no such file, MachineError if it cannot be copied.
  explicit StoreCopy(std::filesystem::path original);

  /// The copy; to be opened read-only.
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
  /// whether it was written to within the last minute, by this machine's clock and its files'.
  [[nodiscard]] bool is_written() const;

 private:
  /// A message with the original's folder in place of the copy's.
  [[nodiscard]] std::string of_original(std::string message) const;
  [[nodiscard]] bool copy_committed() const;
  [[nodiscard]] bool roll_back() const;

  std::filesystem::path original_;
  TemporaryFolder folder_;
  std::filesystem::path copy_;
};

}  // namespace nas
