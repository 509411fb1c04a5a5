#include <pagmo/algorithms/cmaes.hpp>

#include "search/algorithm.hpp"

namespace nas {

namespace {

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  return pagmo::algorithm(pagmo::cmaes(further_generations(settings), -1, -1, -1, -1,
                                       settings.get<double>("sigma0"), settings.get<double>("ftol"),
                                       settings.get<double>("xtol"), /*memory=*/false,
                                       settings.get<bool>("force_bounds"), seed));
}

NAS_REGISTER_ALGORITHM(
    {.key = "cmaes",
     .summary = "CMA-ES (Hansen 2006): adapts a normal distribution over scores, one per option",
     .settings = evolution_strategy_settings(),
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::one,
                       .encoding = Encoding::scores,
                       .batches = false,
                       .fitted_population = evolution_strategy_population,
                       .min_population = 5,
                       .make = make};
    });

}  // namespace

}  // namespace nas
