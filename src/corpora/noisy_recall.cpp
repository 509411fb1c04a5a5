#include "core/setting_forms.hpp"
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
         {setting::integer(
              "vocabulary", 32, 5, 1e6,
              "ids: keys, values and noise, in this order; keys and values half each of what "
              "noise leaves"),
          setting::integer("noise_vocabulary", 16, 1, 1e6, "ids of noise"),
          setting::below(1, setting::number("noise_share", 0.2, 0,
                                            "probability of a pair of being two noise tokens")),
          multi_query_setting()},
         12800, 1280),
     .file = __FILE__},
    load);

}  // namespace

}  // namespace nas
