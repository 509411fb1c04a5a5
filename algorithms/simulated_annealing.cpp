#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <pagmo/algorithm.hpp>
#include <pagmo/algorithms/simulated_annealing.hpp>
#include <pagmo/population.hpp>
#include <pagmo/s11n.hpp>

#include "algorithms/user_defined.hpp"
#include "search/algorithm.hpp"

namespace nas {

namespace {

struct AnnealingOptions {
  double first_temperature = 0;  ///< in the unit of the fitness; 0 = spread of the population
  double last_temperature = 0;   ///< 0 = a hundredth of the first
  unsigned temperatures = 10;
  unsigned ranges = 1;
  unsigned bin_size = 4;
  double first_range = 1;

  static void each(auto& options, auto&& field) {
    field("first_temperature", options.first_temperature);
    field("last_temperature", options.last_temperature);
    field("temperatures", options.temperatures);
    field("ranges", options.ranges);
    field("bin_size", options.bin_size);
    field("first_range", options.first_range);
  }
  void check() const {}  // pagmo does
};

/// Robust standard deviation of the finite ones of some values: their interquartile range over
/// that of the standard normal distribution, so that failures, whose fitness is a penalty, do not
/// decide it; 1 where it is 0.
double spread(const std::vector<std::vector<double>>& fitness) {
  constexpr double kNormal = 1.349;
  std::vector<double> values;
  for (const auto& one : fitness) {
    if (std::isfinite(one.front())) values.push_back(one.front());
  }
  std::sort(values.begin(), values.end());
  const auto quarter = values.size() / 4;
  const double range = values.empty() ? 0.0 : values[values.size() - 1 - quarter] - values[quarter];
  return range > 0.0 ? range / kNormal : 1.0;
}

/// pagmo's adaptive simulated annealing, whose temperatures suit the problem unless they are given:
/// at one far above the differences between candidates every step is taken, at one far below none
/// that leads uphill.
///
/// @see Corana et al. (1987), ACM TOMS 13(3); White (1984), Proc. IEEE ICCD, on a first temperature
/// of the standard deviation of random values.
class SimulatedAnnealing : public Seeded<AnnealingOptions> {
 public:
  using Seeded::Seeded;

  pagmo::population evolve(pagmo::population population) const {
    const double first =
        options_.first_temperature > 0.0 ? options_.first_temperature : spread(population.get_f());
    const double last = options_.last_temperature > 0.0 ? options_.last_temperature : 0.01 * first;
    const pagmo::simulated_annealing annealing(first, last, options_.temperatures, options_.ranges,
                                               options_.bin_size, options_.first_range, seed_);
    return annealing.evolve(std::move(population));
  }

  [[nodiscard]] std::string get_name() const { return "simulated_annealing"; }
};

std::vector<Misfit> fit(Parameters& settings, const SearchFacts& /*facts*/) {
  const auto first = settings.get<double>("first_temperature");
  const auto last = settings.get<double>("last_temperature");
  if (first > 0.0 && last >= first) {
    return {{"last_temperature", "must be below algorithm.first_temperature"}};
  }
  if (first == 0.0 && last > 0.0) {
    return {{"last_temperature", "must be 0 where algorithm.first_temperature is: it is fitted"}};
  }
  return {};
}

NAS_REGISTER_ALGORITHM(
    {.key = "simulated_annealing",
     .summary = "adaptive simulated annealing (Corana et al. 1987) from the best of the initial "
                "population",
     .settings =
         {number_setting("first_temperature", 0.0, 0, 1e12,
                         "initial temperature, in the objective's unit; 0 = the spread of the "
                         "initial population"),
          number_setting("last_temperature", 0.0, 0, 1e12,
                         "final temperature; 0 = a hundredth of the initial one"),
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
                       .make = make_seeded<SimulatedAnnealing>};
    });

}  // namespace

}  // namespace nas

PAGMO_S11N_ALGORITHM_EXPORT(nas::SimulatedAnnealing)
