#include "core/setting_forms.hpp"
#include "data/corpus.hpp"
#include "data/drawn_corpus.hpp"

namespace nas {

namespace {

Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& /*location*/) {
  return draw_recall("in_context_recall", settings, context,
                     {.vocabulary = settings.get<std::int64_t>("vocabulary"),
                      .noise_vocabulary = 0,
                      .noise_share = 0.0,
                      .multi_query = settings.get<bool>("multi_query")});
}

NAS_REGISTER_CORPUS(
    {.key = "in_context_recall",
     .summary = "pairs of a key and a value that an example gives it, recalled where a key comes "
                "again (Poli et al. 2024, MAD, arXiv:2403.17844)",
     .settings = with_example_settings(
         {setting::integer("vocabulary", 16, 4, 1e6,
                           "ids: the lower half are keys, the upper half values"),
          multi_query_setting()},
         12800, 1280),
     .file = __FILE__},
    load);

}  // namespace

}  // namespace nas
