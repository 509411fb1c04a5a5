#include <string>
#include <string_view>

#include "data/data_set.hpp"
#include "data/encoding.hpp"
#include "data/shares.hpp"
#include "data/text_source.hpp"
#include "data/vocabulary.hpp"

namespace nas {

namespace fs = std::filesystem;

namespace {

// Without what colours a terminal: ESC [ ... m.
std::string without_colours(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\x1b') {
      at = std::min(text.find('m', at), text.size());
    } else {
      plain += text[at];
    }
  }
  return plain;
}

void prepare(const fs::path& from, const fs::path& to) {
  Shares shares;
  for (const auto* file : {"chinese", "song100", "tang300"}) {
    std::string saying;
    const auto text = as_utf8(without_colours(read_text_file(file_below(from, file))));
    for_each_line(text, [&](std::string_view line) {
      if (line != "%") {
        saying.append(line) += '\n';
      } else if (!saying.empty()) {
        shares.add(saying);
        saying.clear();
      }
    });
    if (!saying.empty()) shares.add(saying);
  }
  shares.write(to);
}

NAS_REGISTER_TEXT({.key = "fortunes_zh",
                   .summary = "Chinese sayings, stories and poems, 2.2 MB (fortunes-zh 2.98); "
                              "for data.tokenizer byte, char and bpe",
                   .text = "Chinese sayings and poems of fortunes-zh 2.98",
                   .splits = "of twenty sayings one to valid and one to test",
                   .prepare = prepare,
                   .settings = with_tokenizer("char"),
                   .file = __FILE__});

}  // namespace

}  // namespace nas
