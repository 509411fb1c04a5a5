#include "data/corpus.hpp"
#include "data/drawn_corpus.hpp"

namespace nas {

namespace {

Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& /*location*/) {
  return draw_recall("noisy_recall", settings, context,
                     {.vocabulary = settings.get<std::int64_t>("vocabulary"),
                      .noise_vocabulary = settings.get<std::int64_t>("noise_vocabulary"),
                      .noise_share = settings.get<double>("noise_share"),
                      .multi_query = settings.get<bool>("multi_query")});
}

NAS_REGISTER_CORPUS(
    {.key = "noisy_recall",
     .summary = "in-context recall with pairs of noise tokens between the others (Poli et al. "
                "2024, MAD, arXiv:2403.17844)",
     .settings = with_example_settings(
         {{.name = "vocabulary",
           .default_value = std::int64_t{32},
           .help = "ids: keys, values and noise, in this order; keys and values half each of what "
                   "noise leaves",
           .min = 5,
           .max = 1e6},
          {.name = "noise_vocabulary",
           .default_value = std::int64_t{16},
           .help = "ids of noise",
           .min = 1,
           .max = 1e6},
          {.name = "noise_share",
           .default_value = 0.2,
           .help = "probability of a pair of being two noise tokens",
           .min = 0,
           .max = 1,
           .max_exclusive = true},
          multi_query_setting()},
         12800, 1280),
     .file = __FILE__},
    load);

}  // namespace

}  // namespace nas
