#include "data/shares.hpp"

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "data/encoding.hpp"

namespace nas {

namespace fs = std::filesystem;

void Shares::write(const fs::path& folder) const {
  if (count_ < 20) {
    throw InputError("holds " + std::to_string(count_) + " parts of a text, must be at least 20");
  }
  write_durably(folder / "train.txt", texts_[0]);
  write_durably(folder / "valid.txt", texts_[1]);
  write_durably(folder / "test.txt", texts_[2]);
}

fs::path file_below(const fs::path& folder, const std::string& name) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().filename() == name) return entry.path();
  }
  throw InputError("no file " + name + " in it");
}

std::string as_utf8(std::string_view text) {
  std::string utf8;
  utf8.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto begin = at;
    if (next_code_point(text, at)) {
      utf8 += text.substr(begin, at - begin);
    } else {
      utf8 += "\xef\xbf\xbd";
      at = begin + 1;
    }
  }
  return utf8;
}

}  // namespace nas
