#include "algorithms/exhaustive.hpp"

#include <set>

#include <pagmo/problem.hpp>
#include <pagmo/s11n.hpp>

#include "search/algorithm.hpp"
#include "search/variation.hpp"

namespace nas {

namespace {

using Vector = std::vector<double>;

const Requirement require{"exhaustive"};

constexpr double kMostPoints = 1e7;

/// The values that each variable takes.
std::vector<Vector> grid(const pagmo::problem& problem, unsigned levels) {
  const auto [lower, upper] = problem.get_bounds();
  const std::size_t num_reals = problem.get_nx() - problem.get_nix();
  std::vector<Vector> values;
  for (std::size_t i = 0; i < lower.size(); ++i) {
    const double range = upper[i] - lower[i];
    Vector of_variable;
    if (i >= num_reals) {
      for (double value = lower[i]; value <= upper[i]; value += 1.0) of_variable.push_back(value);
    } else if (levels == 1) {
      of_variable = {lower[i] + range / 2.0};
    } else {
      for (unsigned level = 0; level < levels; ++level) {
        of_variable.push_back(lower[i] + range * level / (levels - 1));
      }
    }
    values.push_back(std::move(of_variable));
  }
  return values;
}

}  // namespace

void ExhaustiveOptions::check() const { require(levels >= 1, "levels", levels, ">= 1"); }

pagmo::population Exhaustive::evolve(pagmo::population population) const {
  require_suitable("exhaustive", population, /*single=*/false);
  const auto& problem = population.get_problem();
  const auto values = grid(problem, options_.levels);
  double number = 1.0;
  for (const auto& of_variable : values) number *= static_cast<double>(of_variable.size());
  require(number <= kMostPoints, "points of the space", number, "at most 1e+07");

  AskedPoints asked(population);
  const auto initial = population.get_x();
  const std::set<Vector> known(initial.begin(), initial.end());
  std::vector<Vector> batch;
  std::vector<std::size_t> place(values.size(), 0);
  for (bool more = true; more;) {
    Vector point;
    for (std::size_t i = 0; i < values.size(); ++i) point.push_back(values[i][place[i]]);
    if (!known.contains(point)) batch.push_back(std::move(point));
    if (batch.size() == population.size()) {
      asked.ask(batch);
      batch.clear();
    }
    more = false;
    for (std::size_t i = values.size(); i-- > 0 && !more;) {
      if (++place[i] < values[i].size()) {
        more = true;
      } else {
        place[i] = 0;
      }
    }
  }
  if (!batch.empty()) asked.ask(batch);
  return asked.best();
}

namespace {

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t /*seed*/) {
  return pagmo::algorithm(Exhaustive(options_from<ExhaustiveOptions>(settings)));
}

NAS_REGISTER_ALGORITHM(
    {.key = "exhaustive",
     .summary = "every combination of the categorical genes, with a grid for the real ones",
     .settings = {integer_setting(
         "levels", 1, 1, 1e6,
         "number of values of a real gene, bounds included; 1 = the middle alone")},
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::any, .batches = true, .make = make};
    });

}  // namespace

}  // namespace nas

PAGMO_S11N_ALGORITHM_IMPLEMENT(nas::Exhaustive)
