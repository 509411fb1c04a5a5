#include <cstdint>

#include <pagmo/algorithms/gaco.hpp>
#include <pagmo/bfe.hpp>

#include "search/algorithm.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  pagmo::gaco gaco(further_generations(settings),
                   static_cast<unsigned>(settings.get<Integer>("kernel")),
                   settings.get<double>("convergence"), 0.0, 0.01,
                   static_cast<unsigned>(settings.get<Integer>("threshold")), 7U, 100000U, 100000U,
                   settings.get<double>("focus"), /*memory=*/false, seed);
  gaco.set_bfe(pagmo::bfe());
  return pagmo::algorithm(std::move(gaco));
}

NAS_REGISTER_ALGORITHM(
    {.key = "gaco",
     .summary = "extended ant colony (Schlueter, Egea & Banga 2009); categorical genes by "
                "rounding, which puts their options in an order",
     .settings = ant_colony_settings(),
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::one,
                       .encoding = Encoding::integers,
                       .batches = true,
                       .min_population = 2,
                       .fit = fit_kernel,
                       .make = make};
    });

}  // namespace

}  // namespace nas
