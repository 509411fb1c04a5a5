#include <cstdint>

#include <pagmo/algorithms/bee_colony.hpp>

#include "search/algorithm.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  return pagmo::algorithm(pagmo::bee_colony(
      further_generations(settings), static_cast<unsigned>(settings.get<Integer>("limit")), seed));
}

NAS_REGISTER_ALGORITHM(
    {.key = "bee_colony",
     .summary = "artificial bee colony (Karaboga & Basturk 2007); two candidates per individual "
                "and generation",
     .settings = {generations_setting(20),
                  integer_setting("limit", 20, 1, 1e9,
                                  "attempts without improvement after which an individual (a food "
                                  "source) is replaced")},
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::one,
                       .encoding = Encoding::relaxed,
                       .batches = false,
                       .min_population = 2,
                       .make = make};
    });

}  // namespace

}  // namespace nas
