#include <string>
#include <string_view>

#include "data/archive.hpp"
#include "data/data_set.hpp"
#include "data/shares.hpp"
#include "data/text_source.hpp"
#include "data/vocabulary.hpp"

namespace nas {

namespace fs = std::filesystem;

namespace {

// "Abacus \Ab"a*cus\, n.": the first line of an article, behind an empty one.
bool begins_article(std::string_view line) {
  return !line.empty() && line.front() != ' ' && line.find('\\') != std::string_view::npos;
}

void prepare(const fs::path& from, const fs::path& to) {
  const auto text = as_utf8(read_gzip(file_below(from, "gcide.dict.dz")));
  Shares shares;
  std::string article;
  bool behind_empty = true;
  bool begun = false;  // what is said of the dictionary comes first
  for_each_line(text, [&](std::string_view line) {
    if (behind_empty && begins_article(line)) {
      if (begun) shares.add(article);
      begun = true;
      article.clear();
    }
    behind_empty = line.empty();
    if (begun) article.append(line) += '\n';
  });
  if (begun) shares.add(article);
  shares.write(to);
}

NAS_REGISTER_TEXT(
    {.key = "gcide",
     .summary = "an English dictionary, 126,000 articles, 40 MB: Webster's of 1913 with additions "
                "(GCIDE 0.48)",
     .text = "GNU Collaborative International Dictionary of English 0.48",
     .splits = "of twenty articles one to valid and one to test",
     .prepare = prepare,
     .settings = text_settings(),
     .file = __FILE__});

}  // namespace

}  // namespace nas
