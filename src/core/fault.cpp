#include "core/fault.hpp"

#include <cerrno>
#include <system_error>

namespace nas {

std::string io_failure(const std::filesystem::path& path, int error) {
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
