#include "data/corpus.hpp"
#include "data/data_set.hpp"
#include "data/text.hpp"

namespace nas {

namespace {

Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& location) {
  return text_corpus("wikitext-2", "WikiText-2, tokenised edition",
                     read_data_set("wikitext-2", location), settings, context);
}

NAS_REGISTER_CORPUS(
    {.key = "wikitext-2",
     .summary = "Wikipedia articles, 2.1 M words (Merity et al. 2016, arXiv:1609.07843)",
     .settings = text_settings(),
     .file = __FILE__},
    load);

}  // namespace

}  // namespace nas
