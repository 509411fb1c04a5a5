#include "data/corpus.hpp"
#include "data/data_set.hpp"
#include "data/shares.hpp"
#include "data/text.hpp"

namespace nas {

namespace fs = std::filesystem;

namespace {

void prepare(const fs::path& from, const fs::path& to) {
  write_hundred_million_bytes(file_below(from, "enwik8"), to);
}

Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& location) {
  return text_corpus("enwik8", "the first 100 million bytes of Wikipedia of 2006",
                     read_data_set("enwik8", location), settings, context);
}

NAS_REGISTER_PREPARATION({.key = "enwik8",
                          .summary = "90, 5 and 5 million bytes, as it is used everywhere",
                          .file = __FILE__},
                         prepare);

NAS_REGISTER_CORPUS({.key = "enwik8",
                     .summary = "the first 100 million bytes of the English Wikipedia of 2006, "
                                "with its XML (Mahoney 2009)",
                     .settings = with_tokenizer("byte"),
                     .file = __FILE__},
                    load);

}  // namespace

}  // namespace nas
