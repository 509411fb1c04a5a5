#include "cli/folder_format.hpp"

namespace nas {

FolderFormats& folder_formats() {
  static FolderFormats registry("format");
  return registry;
}

}  // namespace nas
