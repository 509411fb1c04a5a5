#include "core/temporary_folder.hpp"

#include <cstdlib>
#include <fstream>

#include "core/error.hpp"

namespace nas {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "attnas-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw InputError(name + ": cannot be created");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TemporaryFolder::write(const std::string& name,
                                             const std::string& text) const {
  const auto file = path_ / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

}  // namespace nas
