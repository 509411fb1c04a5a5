#include <cstdint>

#include <pagmo/algorithms/nsga2.hpp>
#include <pagmo/bfe.hpp>

#include "search/algorithm.hpp"

namespace nas {

namespace {

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  pagmo::nsga2 nsga2(further_generations(settings), settings.get<double>("crossover"),
                     settings.get<double>("eta_c"), settings.get<double>("mutation"),
                     settings.get<double>("eta_m"), seed);
  nsga2.set_bfe(pagmo::bfe());
  return pagmo::algorithm(std::move(nsga2));
}

std::vector<Misfit> fit(Parameters& settings, const SearchFacts& facts) {
  fit_mutation(settings, facts);
  return {};
}

NAS_REGISTER_ALGORITHM(
    {.key = "nsga2",
     .summary = "NSGA-II (Deb et al. 2002): non-domination rank and crowding distance; 2-point "
                "crossover and uniform reset on categories",
     .settings =
         {generations_setting(20),
          [] {
            auto setting = number_setting("crossover", 0.95, 0, 1, "probability of crossover");
            setting.max_exclusive = true;
            return setting;
          }(),
          number_setting("eta_c", 10.0, 1, 99, "distribution index of the crossover of real genes"),
          number_setting("mutation", 0.0, 0, 1,
                         "mutation probability per gene; 0 = 1 / number of genes, one gene of a "
                         "child on average"),
          number_setting("eta_m", 50.0, 1, 99, "distribution index of the mutation of real genes")},
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::several,
                       .encoding = Encoding::integers,
                       .batches = true,
                       .min_population = 8,
                       .population_multiple = 4,
                       .fit = fit,
                       .make = make};
    });

}  // namespace

}  // namespace nas
