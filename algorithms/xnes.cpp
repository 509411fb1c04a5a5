#include <cstdint>

#include <pagmo/algorithms/xnes.hpp>

#include "search/algorithm.hpp"

namespace nas {

namespace {

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  return pagmo::algorithm(pagmo::xnes(further_generations(settings), -1, -1, -1,
                                      settings.get<double>("sigma0"), settings.get<double>("ftol"),
                                      settings.get<double>("xtol"), /*memory=*/false,
                                      settings.get<bool>("force_bounds"), seed));
}

NAS_REGISTER_ALGORITHM(
    {.key = "xnes",
     .summary = "exponential natural evolution strategy (Glasmachers et al. 2010) over one score "
                "an option",
     .settings = {generations_setting(20),
                  number_setting("sigma0", 0.5, 1e-6, 1,
                                 "first standard deviation, as a share of the range"),
                  number_setting("ftol", 0.0, 0, 1,
                                 "ends when the population's values differ by less"),
                  number_setting("xtol", 0.0, 0, 1, "ends when steps are smaller"),
                  {.name = "force_bounds",
                   .default_value = true,
                   .help = "keep candidates within the bounds; else they are clamped when decoded, "
                           "and what was adapted is not what was evaluated"}},
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
