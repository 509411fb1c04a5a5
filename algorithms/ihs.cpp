#include <cstdint>

#include <pagmo/algorithms/ihs.hpp>

#include "search/algorithm.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  const auto evaluations = settings.get<Integer>("evaluations");
  const auto initial = settings.get<Integer>("population");
  return pagmo::algorithm(pagmo::ihs(static_cast<unsigned>(evaluations - initial),
                                     settings.get<double>("memory"), 0.35, 0.99, 1e-5, 1.0, seed));
}

NAS_REGISTER_ALGORITHM(
    {.key = "ihs",
     .summary = "improved harmony search (Mahdavi, Fesanghary & Damangir 2007): one new candidate "
                "after the other",
     .settings = {evaluations_setting(),
                  number_setting("memory", 0.85, 1e-6, 0.999999,
                                 "probability that a gene is taken from the population")},
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::one,
                       .encoding = Encoding::relaxed,
                       .batches = false,
                       .only_one_because =
                           "the multi-objective form of pagmo 2.18 overwrites the population that "
                           "it reads and loses non-dominated points",
                       .make = make};
    });

}  // namespace

}  // namespace nas
