#include "core/fault.hpp"

#include <cerrno>
#include <system_error>

namespace nas {

namespace {

namespace fs = std::filesystem;

/// A path, or a folder that it is in, which is a link to nothing; empty: none is.
fs::path dangling_link(fs::path path) {
  std::error_code unknown;
  for (; path.has_relative_path(); path = path.parent_path()) {
    if (fs::is_symlink(path, unknown) && !fs::exists(path, unknown)) return path;
  }
  return {};
}

}  // namespace

std::string io_failure(const fs::path& path, int error) {
  if (error == EEXIST || error == ENOENT) {
    std::error_code unknown;
    if (const auto link = dangling_link(path); !link.empty()) {
      return link.string() + ": is a link to " + fs::read_symlink(link, unknown).string() +
             ", which is not there";
    }
  }
  const auto folder = path.has_parent_path() ? path.parent_path().string() : std::string(".");
  switch (error) {
    case ENOSPC:
      return "no space left in " + folder;
    case EDQUOT:
      return "no space left in " + folder + ": the user's quota is spent";
    case EFBIG:
      return "no space left in " + folder + ": " + path.filename().string() +
             " would exceed the largest file that this process may write (ulimit -f)";
    default:
      return path.string() + ": " + std::generic_category().message(error);
  }
}

bool is_lack_of_space(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

bool is_bad_path(const std::error_code& error) {
  switch (error.value()) {
    case EACCES:
    case EEXIST:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENOENT:
    case ENOTDIR:
    case EPERM:
    case EROFS:
      return true;
    default:
      return false;
  }
}

}  // namespace nas
