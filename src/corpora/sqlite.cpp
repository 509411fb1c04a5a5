#include <algorithm>
#include <string>
#include <vector>

#include "data/data_set.hpp"
#include "data/shares.hpp"
#include "data/text_source.hpp"

namespace nas {

namespace fs = std::filesystem;

namespace {

// Files in order of their paths, so that those of one folder are in all splits.
void prepare(const fs::path& from, const fs::path& to) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    const auto kind = entry.path().extension();
    if (entry.is_regular_file() && (kind == ".c" || kind == ".h")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Shares shares;
  for (const auto& file : files) {
    auto text = as_utf8(read_text_file(file));
    if (!text.empty() && text.back() != '\n') text += '\n';
    shares.add(text);
  }
  shares.write(to);
}

NAS_REGISTER_TEXT({.key = "sqlite",
                   .summary = "C source: the 405 files of SQLite 3.40.1, 13 MB; files that began "
                              "as copies of others may be in several splits",
                   .text = "C source of SQLite 3.40.1",
                   .splits = "of twenty files one to valid and one to test",
                   .prepare = prepare,
                   .settings = with_tokenizer("byte"),
                   .file = __FILE__});

}  // namespace

}  // namespace nas
