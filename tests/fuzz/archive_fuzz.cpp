// An archive: whatever it says, it is unpacked inside the folder, to regular files, or refused.

#include <filesystem>

#include "core/temporary_folder.hpp"
#include "data/archive.hpp"
#include "fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace fs = std::filesystem;
  const nas::TemporaryFolder folder;
  const auto archive = folder.write("archive", std::string(nas::fuzz::text(data, size)));
  // So deep that several ".." still lead to what is looked at.
  const auto inside = folder.path() / "1/2/3/4/5/6/7/8";
  fs::create_directories(inside);
  nas::fuzz::taken([&] { nas::unpack(archive, inside); });
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    const auto& path = entry.path();
    const bool above = path == archive || inside.string().starts_with(path.string());
    nas::fuzz::require(above || path.string().starts_with(inside.string() + "/"),
                       "nothing lies beside it");
    nas::fuzz::require(!entry.is_symlink() && (entry.is_directory() || entry.is_regular_file()),
                       "files and folders alone");
  }
  nas::fuzz::require(!fs::exists("/tmp/absolute"), "corpus/archive/absolute.tar.xz writes nothing");
  return 0;
}
