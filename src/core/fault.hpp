#pragma once

#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace nas {

/// A candidate cannot be built or computed: an exception of its own components, which recurs
/// whenever it is tried. A result of the candidate: Status::failed with this text.
class CandidateFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A device has too little memory for what is on it. A result of a candidate only where nothing
/// else was on the device; std::bad_alloc, its base, says the same of the machine's own memory,
/// which others share, and is no result of a candidate.
class DeviceOutOfMemory : public std::bad_alloc {
 public:
  explicit DeviceOutOfMemory(std::string text) : text_(std::move(text)) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// Why an operation on a file or folder failed: "no space left in FOLDER" for a full disk, a spent
/// quota and a file beyond the process's limit of size, else "PATH: " and the system's words.
/// @param error  of errno.
std::string io_failure(const std::filesystem::path& path, int error);

/// Whether an error of errno says that a file cannot grow: a full disk, a spent quota, a limit.
bool is_lack_of_space(int error);
/// Whether an operation failed because of the path that it was given, not of the machine: nothing
/// there, no permission, a file where a folder must be.
bool is_bad_path(const std::error_code& error);

}  // namespace nas
