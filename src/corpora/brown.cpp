#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "data/data_set.hpp"
#include "data/text_source.hpp"
#include "data/vocabulary.hpp"

namespace nas {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kNumFiles = 500;
constexpr std::int64_t kTrainTokens = 800'000;
constexpr std::int64_t kValidTokens = 200'000;

// ca01 .. cr09: genre letter and number.
bool is_text_name(const std::string& name) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return name.size() == 4 && name[0] == 'c' && name[1] >= 'a' && name[1] <= 'r' && digit(name[2]) &&
         digit(name[3]);
}

// The texts below a folder in order of name, which is the order that the splits are cut in.
std::vector<fs::path> find_texts(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && is_text_name(entry.path().filename())) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end(),
            [](const fs::path& a, const fs::path& b) { return a.filename() < b.filename(); });
  if (files.size() != kNumFiles) {
    throw InputError("holds " + std::to_string(files.size()) +
                     " texts of the Brown corpus (ca01 ... cr09), must hold " +
                     std::to_string(kNumFiles));
  }
  return files;
}

// Puts words into train, valid and test in turn, by number of tokens.
class Splitter {
 public:
  void word(std::string_view word) {
    if (num_tokens_ == kTrainTokens || num_tokens_ == kTrainTokens + kValidTokens) next_split();
    if (in_line_) texts_[split_] += ' ';
    texts_[split_] += word;
    in_line_ = true;
    ++num_tokens_;
  }
  void end_line() {
    if (in_line_) texts_[split_] += '\n';
    in_line_ = false;
  }
  void write(const fs::path& folder) const {
    write_durably(folder / "train.txt", texts_[0]);
    write_durably(folder / "valid.txt", texts_[1]);
    write_durably(folder / "test.txt", texts_[2]);
  }

 private:
  // A sentence across the cut becomes two lines.
  void next_split() {
    end_line();
    ++split_;
  }

  std::array<std::string, 3> texts_;
  std::size_t split_ = 0;
  std::int64_t num_tokens_ = 0;
  bool in_line_ = false;
};

// word/tag: a word may contain '/' itself, a tag does not.
std::string_view strip_tag(std::string_view tagged) { return tagged.substr(0, tagged.rfind('/')); }

void prepare(const fs::path& from, const fs::path& to) {
  Splitter splitter;
  for (const auto& file : find_texts(from)) {
    for_each_line(read_text_file(file), [&](std::string_view line) {
      for_each_word(line, [&](std::string_view tagged) { splitter.word(strip_tag(tagged)); });
      splitter.end_line();
    });
  }
  splitter.write(to);
}

NAS_REGISTER_TEXT({.key = "brown",
                   .summary = "American English of 1961, 500 texts, 1.16 M tokens (Francis and "
                              "Kucera 1964)",
                   .text = "Brown corpus without tags",
                   .splits = "strips the tags; 800,000 tokens to train, 200,000 to valid",
                   .prepare = prepare,
                   .settings = text_settings(),
                   .file = __FILE__});

}  // namespace

}  // namespace nas
