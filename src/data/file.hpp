#pragma once

#include <cstdio>
#include <memory>

namespace nas {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
/// A file that is written; unlike a stream's, its failures have the reason in errno.
using File = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace nas
