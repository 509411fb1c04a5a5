#include "data/text_source.hpp"

namespace nas {

NAS_REGISTER_TEXT(
    {.key = "wikitext-2",
     .summary = "Wikipedia articles, 2.1 M words (Merity et al. 2016, arXiv:1609.07843)",
     .text = "WikiText-2, tokenised edition",
     .settings = text_settings(),
     .file = __FILE__});

}  // namespace nas
