#include <cstdint>

#include <pagmo/algorithms/de1220.hpp>

#include "search/algorithm.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  return pagmo::algorithm(pagmo::de1220(further_generations(settings),
                                        pagmo::de1220_statics<void>::allowed_variants,
                                        static_cast<unsigned>(settings.get<Integer>("adaptation")),
                                        0.0, 0.0, /*memory=*/false, seed));
}

NAS_REGISTER_ALGORITHM(
    {.key = "de1220",
     .summary = "self-adaptive differential evolution that adapts its variant too (pagmo)",
     .settings = {generations_setting(20),
                  integer_setting("adaptation", 1, 1, 2, "how F and CR adapt: 1 jDE, 2 iDE")},
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::one,
                       .encoding = Encoding::relaxed,
                       .batches = false,
                       .min_population = 7,
                       .make = make};
    });

}  // namespace

}  // namespace nas
