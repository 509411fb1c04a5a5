#include "data/text_source.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "data/archive.hpp"
#include "data/corpus.hpp"
#include "data/data_set.hpp"
#include "data/shares.hpp"
#include "data/vocabulary.hpp"

namespace nas {

namespace fs = std::filesystem;

namespace {

void cut_hundred_million_bytes(const fs::path& file, const fs::path& folder) {
  constexpr std::size_t kTrain = 90'000'000;
  constexpr std::size_t kOthers = 5'000'000;
  const auto text = read_text_file(file);
  if (text.size() != kTrain + 2 * kOthers) {
    throw InputError(file.string() + ": has " + std::to_string(text.size()) +
                     " bytes, must have 100000000");
  }
  const std::string_view all(text);
  write_durably(folder / "train.txt", all.substr(0, kTrain));
  write_durably(folder / "valid.txt", all.substr(kTrain, kOthers));
  write_durably(folder / "test.txt", all.substr(kTrain + kOthers));
}

/// "1.4.12. Heading", not indented: chapter, section and its part.
bool begins_section(std::string_view line) {
  int numbers = 0;
  while (true) {
    const auto end = std::min(line.find_first_not_of("0123456789"), line.size());
    if (end == 0) return numbers == 3;
    if (end == line.size() || line[end] != '.') return false;
    line.remove_prefix(end + 1);
    ++numbers;
  }
}

void deal_sections(std::string_view text, const fs::path& to) {
  Shares shares;
  std::string section;
  for_each_line(text, [&](std::string_view line) {
    if (begins_section(line)) {
      if (!section.empty()) shares.add(section);
      section.clear();
    } else if (section.empty()) {
      return;  // title, contents, preface
    }
    section.append(line) += '\n';
  });
  if (!section.empty()) shares.add(section);
  shares.write(to);
}

}  // namespace

bool add_text(TextSource source) {
  if (source.prepare) {
    preparations().add({.key = source.key, .summary = source.splits, .file = source.file},
                       source.prepare);
  }
  const auto load = [key = source.key, text = source.text](const Parameters& settings,
                                                           std::int64_t context,
                                                           const DataLocation& location) {
    return text_corpus(key, text, read_data_set(key, location), settings, context);
  };
  return corpora().add({.key = std::move(source.key),
                        .summary = std::move(source.summary),
                        .settings = std::move(source.settings),
                        .file = std::move(source.file)},
                       load);
}

TextSource hundred_million_bytes(std::string key, std::string summary, std::string text,
                                 std::string file) {
  const auto prepare = [key](const fs::path& from, const fs::path& to) {
    cut_hundred_million_bytes(file_below(from, key), to);
  };
  return {.key = std::move(key),
          .summary = std::move(summary),
          .text = std::move(text),
          .splits = "90, 5 and 5 million bytes, as it is used everywhere",
          .prepare = prepare,
          .settings = with_tokenizer("byte"),
          .file = std::move(file)};
}

TextSource debian_reference(std::string key, const std::string& package,
                            const std::string& language, std::string file) {
  const auto prepare = [package](const fs::path& from, const fs::path& to) {
    const auto name = "debian-reference." + package + ".txt.gz";
    deal_sections(as_utf8(read_gzip(file_below(from, name))), to);
  };
  return {.key = std::move(key),
          .summary = "Debian's reference manual in " + language +
                     ", one text in nine languages with the same 343 sections in the same splits "
                     "(debian-reference 2.100)",
          .text = "Debian's reference manual 2.100 in " + language,
          .splits = "of twenty sections one to valid and one to test",
          .prepare = prepare,
          .settings = with_tokenizer("byte"),
          .file = std::move(file)};
}

}  // namespace nas
