#include "algorithms/nsga2.hpp"

#include <cstdint>
#include <utility>

#include <pagmo/problem.hpp>
#include <pagmo/s11n.hpp>
#include <pagmo/utils/genetic_operators.hpp>

#include "search/algorithm.hpp"
#include "search/genetic_variation.hpp"
#include "search/variation.hpp"

namespace nas {

namespace {

using Vector = std::vector<double>;
using Points = std::vector<Vector>;

const Requirement require{"nsga2"};

/// Winners of tournaments, as many as there are individuals.
Points parents(const Points& individuals, const Points& fitness, std::mt19937& engine) {
  const CrowdedRanking ranking(fitness);
  Points winners;
  for (int round = 0; round < 2; ++round) {
    const auto order = shuffled(individuals.size(), engine);
    for (std::size_t i = 0; i < order.size(); i += 2) {
      winners.push_back(individuals[ranking.winner(order[i], order[i + 1], engine)]);
    }
  }
  return winners;
}

/// Children of pairs of parents, of which any gene may change: pagmo's crossover and mutation.
Points any_children(const Points& parents, const pagmo::problem& problem,
                    const Nsga2Options& options, std::mt19937& engine) {
  const auto bounds = problem.get_bounds();
  const auto integers = problem.get_nix();
  const double rate =
      options.mutation > 0.0 ? options.mutation : 1.0 / static_cast<double>(problem.get_nx());
  Points children;
  for (std::size_t i = 0; i + 1 < parents.size(); i += 2) {
    auto [one, other] = pagmo::sbx_crossover(parents[i], parents[i + 1], bounds, integers,
                                             options.crossover, options.eta_c, engine);
    for (auto* child : {&one, &other}) {
      pagmo::polynomial_mutation(*child, bounds, integers, rate, options.eta_m, engine);
      children.push_back(std::move(*child));
    }
  }
  return children;
}

}  // namespace

void Nsga2Options::check() const {
  require(generations >= 1, "generations", generations, ">= 1");
  VariationOptions::of(*this).check(require);
}

pagmo::population Nsga2::evolve(pagmo::population population) const {
  require_suitable("nsga2", population, /*single=*/false);
  const pagmo::problem& problem = population.get_problem();
  const std::size_t size = population.size();
  require(problem.get_nobj() >= 2, "objectives of the problem",
          static_cast<double>(problem.get_nobj()), ">= 2");
  require(size % 4 == 0, "population", static_cast<double>(size), "a multiple of 4");

  auto individuals = population.get_x();
  auto fitness = population.get_f();
  GeneticVariation variation(problem, VariationOptions::of(options_), engine_, individuals);
  for (unsigned generation = 1; generation < options_.generations; ++generation) {
    const auto chosen = parents(individuals, fitness, engine_);
    const auto children = options_.active ? variation.offspring(chosen, size)
                                          : any_children(chosen, problem, options_, engine_);
    const auto values = evaluate(problem, children);
    individuals.insert(individuals.end(), children.begin(), children.end());
    fitness.insert(fitness.end(), values.begin(), values.end());
    Points survivors;
    Points of_survivors;
    for (const auto i : CrowdedRanking(fitness).best(size)) {
      survivors.push_back(individuals[i]);
      of_survivors.push_back(fitness[i]);
    }
    individuals = std::move(survivors);
    fitness = std::move(of_survivors);
  }
  for (std::size_t i = 0; i < size; ++i) population.set_xf(i, individuals[i], fitness[i]);
  return population;
}

namespace {

pagmo::algorithm make(const Parameters& settings, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  auto options = options_from<Nsga2Options>(settings);
  options.active = settings.get<std::string>("variation") == "active";
  return pagmo::algorithm(Nsga2(options, seed));
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
                         "child on average (with variation active fewer, where some have no "
                         "effect)"),
          number_setting("eta_m", 50.0, 1, 99, "distribution index of the mutation of real genes"),
          choice_setting("variation", {"all", "active"},
                         "all: any gene mutates (pagmo's); active: genes with an effect alone, "
                         "uniform crossover, and a child that was asked for before is changed "
                         "further")},
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

PAGMO_S11N_ALGORITHM_IMPLEMENT(nas::Nsga2)
