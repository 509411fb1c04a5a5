#include <cstdint>

#include <pagmo/algorithms/sade.hpp>

#include "search/algorithm.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  return pagmo::algorithm(pagmo::sade(further_generations(settings),
                                      static_cast<unsigned>(settings.get<Integer>("variant")),
                                      static_cast<unsigned>(settings.get<Integer>("adaptation")),
                                      0.0, 0.0, /*memory=*/false, seed));
}

NAS_REGISTER_ALGORITHM(
    {.key = "sade",
     .summary = "self-adaptive differential evolution (Brest et al. 2006; Elsayed et al. 2011)",
     .settings = {generations_setting(20),
                  integer_setting("variant", 2, 1, 18,
                                  "variant of mutation and crossover, in the order of pagmo"),
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
