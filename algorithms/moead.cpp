#include <algorithm>
#include <cstdint>

#include <pagmo/algorithms/moead.hpp>

#include "search/algorithm.hpp"

namespace nas {

namespace {

using Integer = std::int64_t;

/// Numbers of points of a simplex grid, C(H + m - 1, m - 1): the largest that is at most `size`,
/// and the next one.
std::pair<Integer, Integer> grid_sizes(Integer objectives, Integer size) {
  const auto points = [objectives](Integer divisions) {
    Integer number = 1;
    for (Integer i = 1; i < objectives; ++i) number = number * (divisions + i) / i;
    return number;
  };
  Integer divisions = 1;
  while (points(divisions + 1) <= size) ++divisions;
  return {points(divisions), points(divisions + 1)};
}

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  return pagmo::algorithm(pagmo::moead(
      further_generations(settings), settings.get<std::string>("weight_generation"),
      settings.get<std::string>("scalarisation"),
      static_cast<pagmo::population::size_type>(settings.get<Integer>("neighbours")),
      settings.get<double>("crossover"), settings.get<double>("scale"),
      settings.get<double>("eta_m"), settings.get<double>("neighbourhood"), 2U, true, seed));
}

std::vector<Misfit> fit(Parameters& settings, const SearchFacts& facts) {
  std::vector<Misfit> misfits;
  const auto population = settings.get<Integer>("population");
  if (settings.get<Integer>("neighbours") == 0) {
    settings.set("neighbours", std::min<Integer>(20, population - 1));
  }
  if (const auto neighbours = settings.get<Integer>("neighbours");
      neighbours < 2 || neighbours > population - 1) {
    misfits.push_back({"neighbours", "must be in [2, " + std::to_string(population - 1) +
                                         "], at most algorithm.population - 1"});
  }
  const auto objectives = static_cast<Integer>(facts.num_objectives);
  if (settings.get<std::string>("weight_generation") == "fitted") {
    settings.set("weight_generation", std::string(objectives == 2 ? "grid" : "low discrepancy"));
  }
  if (settings.get<std::string>("weight_generation") == "grid") {
    const auto [below, above] = grid_sizes(objectives, population);
    if (below != population) {
      misfits.push_back({"weight_generation",
                         "must be another, or algorithm.population " + std::to_string(below) +
                             " or " + std::to_string(above) + ": a grid of " +
                             std::to_string(objectives) + " objectives has so many weights"});
    }
  }
  if (population < objectives) {
    misfits.push_back(
        {"population", "must be at least the number of objectives, " + std::to_string(objectives)});
  }
  return misfits;
}

NAS_REGISTER_ALGORITHM(
    {.key = "moead",
     .summary = "MOEA/D (Zhang & Li 2007; Li & Zhang 2009): one scalar subproblem per individual, "
                "solved with its neighbours",
     .settings =
         {generations_setting(20),
          choice_setting(
              "weight_generation", {"fitted", "grid", "low discrepancy", "random"},
              "how weight vectors are made; fitted: grid for two objectives, else low discrepancy"),
          choice_setting("scalarisation", {"tchebycheff", "weighted", "bi"},
                         "how a subproblem combines the objectives, scaled by their ranges"),
          integer_setting("neighbours", 0, 0, 1e6,
                          "subproblems (T) from which parents come; 0 = 20, or population - 1 "
                          "where that is smaller"),
          number_setting("crossover", 1.0, 0, 1,
                         "crossover probability CR of differential evolution"),
          number_setting("scale", 0.5, 0, 1, "scale factor F of differential evolution"),
          number_setting("eta_m", 20.0, 0, 1000, "distribution index of the mutation"),
          number_setting("neighbourhood", 0.9, 0, 1,
                         "probability that parents come from the neighbours only")},
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::several,
                       .encoding = Encoding::relaxed,
                       .batches = false,
                       .min_population = 4,
                       .fit = fit,
                       .make = make};
    });

}  // namespace

}  // namespace nas
