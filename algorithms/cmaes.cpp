#include <algorithm>
#include <cmath>
#include <cstdint>

#include <pagmo/algorithms/cmaes.hpp>

#include "core/setting_forms.hpp"
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

std::int64_t fitted_population(const SearchFacts& facts) {
  const double dimension = static_cast<double>(std::max<std::size_t>(facts.dimension, 1));
  return std::max<std::int64_t>(5, 4 + static_cast<std::int64_t>(3.0 * std::log(dimension)));
}

NAS_REGISTER_ALGORITHM(
    {.key = "cmaes",
     .summary = "CMA-ES (Hansen 2006): adapts a normal distribution over scores, one per option",
     .settings =
         {generations_setting(20),
          number_setting("sigma0", 0.5, 1e-6, 1,
                         "initial standard deviation, as a share of each variable's range"),
          number_setting("ftol", 0.0, 0, 1,
                         "the search ends when the values of a generation differ by less, as on a "
                         "plateau; 0 = never"),
          number_setting("xtol", 0.0, 0, 1,
                         "the search ends when its steps are smaller; 0 = never"),
          setting::any("force_bounds", true,
                       "keep candidates within the bounds; else they are clamped when decoded, and "
                       "the algorithm adapts to points other than those evaluated")},
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::one,
                       .encoding = Encoding::scores,
                       .batches = false,
                       .fitted_population = fitted_population,
                       .min_population = 5,
                       .make = make};
    });

}  // namespace

}  // namespace nas
