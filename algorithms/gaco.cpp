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
     .summary = "extended ant colony (Schlueter, Egea & Banga 2009); categories by rounding, which "
                "orders them",
     .settings = {generations_setting(20),
                  integer_setting("kernel", 0, 0, 1e6,
                                  "solutions in the archive that guides the ants; 0 = fitted: 63, "
                                  "or the population if less"),
                  number_setting("convergence", 1.0, 0, 100,
                                 "q: the smaller, the more the best solutions weigh"),
                  integer_setting("threshold", 1, 1, 1e9,
                                  "generation from which the convergence speed q is 0.01"),
                  number_setting("focus", 0.0, 0, 1e6,
                                 "0 = none; else pulls the ants towards the best")},
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
