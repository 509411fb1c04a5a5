#include "data/corpus.hpp"
#include "data/data_set.hpp"
#include "data/shares.hpp"
#include "data/text.hpp"

namespace nas {

namespace fs = std::filesystem;

namespace {

void prepare(const fs::path& from, const fs::path& to) {
  write_hundred_million_bytes(file_below(from, "text8"), to);
}

Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& location) {
  return text_corpus("text8", "Wikipedia of 2006 as 100 million small letters and blanks",
                     read_data_set("text8", location), settings, context);
}

NAS_REGISTER_PREPARATION({.key = "text8",
                          .summary = "90, 5 and 5 million bytes, as it is used everywhere",
                          .file = __FILE__},
                         prepare);

NAS_REGISTER_CORPUS({.key = "text8",
                     .summary = "English Wikipedia of 2006 as letters a to z and blanks, 100 MB in "
                                "one line (Mahoney 2009)",
                     .settings = with_tokenizer("byte"),
                     .file = __FILE__},
                    load);

}  // namespace

}  // namespace nas
