// An archive: whatever it says, it is unpacked inside the folder, to regular files, or refused.

#include <filesystem>

#include "core/temporary_folder.hpp"
#include "data/archive.hpp"
#include "fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace fs = std::filesystem;
  const nas::TemporaryFolder folder;
  const auto archive = folder.write("archive", std::string(nas::fuzz::text(data, size)));
  const auto inside = folder.path() / "inside";
  fs::create_directory(inside);
  nas::fuzz::taken([&] { nas::unpack(archive, inside); });
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    nas::fuzz::require(entry.path() == archive || entry.path() == inside, "nothing lies beside it");
  }
  for (const auto& entry : fs::recursive_directory_iterator(inside)) {
    nas::fuzz::require(entry.is_directory() || (entry.is_regular_file() && !entry.is_symlink()),
                       "files and folders alone");
  }
  return 0;
}
