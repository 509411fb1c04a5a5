#include <cstdint>

#include <pagmo/algorithms/simulated_annealing.hpp>

#include "search/algorithm.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  return pagmo::algorithm(pagmo::simulated_annealing(
      settings.get<double>("first_temperature"), settings.get<double>("last_temperature"),
      static_cast<unsigned>(settings.get<Integer>("temperatures")),
      static_cast<unsigned>(settings.get<Integer>("ranges")),
      static_cast<unsigned>(settings.get<Integer>("bin_size")), settings.get<double>("first_range"),
      seed));
}

std::vector<Misfit> fit(Parameters& settings, const SearchFacts& /*facts*/) {
  if (settings.get<double>("last_temperature") >= settings.get<double>("first_temperature")) {
    return {{"last_temperature", "must be below algorithm.first_temperature"}};
  }
  return {};
}

NAS_REGISTER_ALGORITHM(
    {.key = "simulated_annealing",
     .summary = "adaptive simulated annealing (Corana et al. 1987) from the best of the initial "
                "population; temperatures in the objective's unit",
     .settings =
         {number_setting("first_temperature", 10.0, 1e-12, 1e12, "initial temperature"),
          number_setting("last_temperature", 0.1, 1e-12, 1e12, "final temperature"),
          integer_setting("temperatures", 10, 1, 1e6,
                          "adjustments of the temperature, from the initial to the final one"),
          integer_setting("ranges", 1, 1, 1e6, "adjustments of the step size at each temperature"),
          integer_setting("bin_size", 4, 1, 1e6,
                          "candidates per variable between two adjustments of the step size"),
          number_setting("first_range", 1.0, 1e-6, 1,
                         "initial step size, as a share of each variable's range")},
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::one,
                       .encoding = Encoding::relaxed,
                       .batches = false,
                       .fit = fit,
                       .make = make};
    });

}  // namespace

}  // namespace nas
