#pragma once

#include <filesystem>
#include <string>

namespace nas {

/// A folder of its own below the system's folder for temporary files; gone, with all that is in it,
/// when the object is. @throws InputError if it cannot be created.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes a file, with the folders it needs. @return its path.
  std::filesystem::path write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

}  // namespace nas
