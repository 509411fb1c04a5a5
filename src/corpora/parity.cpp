#include "data/corpus.hpp"
#include "data/drawn_corpus.hpp"

namespace nas {

namespace {

Corpus load(const Parameters& settings, std::int64_t context, const DataLocation& /*location*/) {
  return draw_running_counts("parity", settings, context, 2);
}

NAS_REGISTER_CORPUS({.key = "parity",
                     .summary = "state tracking: at every position whether the ones among the "
                                "random bits so far are odd (Grazzi et al. 2024, arXiv:2411.12537)",
                     .settings = with_example_settings({test_lengths_setting()}, 20000, 1000),
                     .file = __FILE__},
                    load);

}  // namespace

}  // namespace nas
