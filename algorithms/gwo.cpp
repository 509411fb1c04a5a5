#include <cstdint>

#include <pagmo/algorithms/gwo.hpp>

#include "search/algorithm.hpp"

namespace nas {

namespace {

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  return pagmo::algorithm(pagmo::gwo(further_generations(settings), seed));
}

NAS_REGISTER_ALGORITHM({.key = "gwo",
                        .summary = "grey wolf optimiser (Mirjalili, Mirjalili & Lewis 2014)",
                        .settings = {generations_setting(20, 4)},
                        .file = __FILE__},
                       [] {
                         return Algorithm{.objectives = Algorithm::Objectives::one,
                                          .encoding = Encoding::relaxed,
                                          .batches = false,
                                          .min_population = 3,
                                          .make = make};
                       });

}  // namespace

}  // namespace nas
