#include "core/setting_forms.hpp"
#include "data/corpus.hpp"
#include "data/drawn_corpus.hpp"

namespace nas {

namespace {

Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& /*location*/) {
  return draw_running_counts("modular_count", settings, context,
                             settings.get<std::int64_t>("modulus"));
}

NAS_REGISTER_CORPUS(
    {.key = "modular_count",
     .summary = "state tracking: at every position the number of ones among the random bits so "
                "far, modulo m (Grazzi et al. 2024, arXiv:2411.12537)",
     .settings = with_example_settings(
         {setting::integer("modulus", 3, 2, 1000,
                           "m; also the size of the vocabulary, whose ids 0 and 1 are the bits"),
          test_lengths_setting()},
         20000, 1000),
     .file = __FILE__},
    load);

}  // namespace

}  // namespace nas
