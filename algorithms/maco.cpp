#include <cstdint>

#include <pagmo/algorithms/maco.hpp>
#include <pagmo/bfe.hpp>

#include "search/algorithm.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  pagmo::maco maco(further_generations(settings),
                   static_cast<unsigned>(settings.get<Integer>("kernel")),
                   settings.get<double>("convergence"),
                   static_cast<unsigned>(settings.get<Integer>("threshold")), 7U, 100000U,
                   settings.get<double>("focus"), /*memory=*/false, seed);
  maco.set_bfe(pagmo::bfe());
  return pagmo::algorithm(std::move(maco));
}

NAS_REGISTER_ALGORITHM(
    {.key = "maco",
     .summary = "multi-objective ant colony (MHACO, Acciarini, Izzo & Mooij 2020); categorical "
                "genes by rounding, which puts their options in an order",
     .settings = ant_colony_settings(),
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::several,
                       .encoding = Encoding::integers,
                       .batches = true,
                       .min_population = 2,
                       .fit = fit_kernel,
                       .make = make};
    });

}  // namespace

}  // namespace nas
