#include <cstdint>

#include <pagmo/algorithms/de.hpp>

#include "search/algorithm.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  return pagmo::algorithm(pagmo::de(further_generations(settings), settings.get<double>("scale"),
                                    settings.get<double>("crossover"),
                                    static_cast<unsigned>(settings.get<Integer>("variant")), 0.0,
                                    0.0, seed));
}

NAS_REGISTER_ALGORITHM(
    {.key = "de",
     .summary = "differential evolution (Storn & Price 1997)",
     .settings = {generations_setting(20),
                  number_setting("scale", 0.8, 0, 1, "factor F by which differences are scaled"),
                  number_setting("crossover", 0.9, 0, 1, "crossover probability CR"),
                  integer_setting("variant", 2, 1, 10,
                                  "variant of mutation and crossover, in the order of pagmo: 1 "
                                  "best/1/exp, 2 rand/1/exp, ... 7 rand/1/bin")},
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::one,
                       .encoding = Encoding::relaxed,
                       .batches = false,
                       .min_population = 5,
                       .make = make};
    });

}  // namespace

}  // namespace nas
