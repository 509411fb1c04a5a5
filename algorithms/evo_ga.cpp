#include "algorithms/evo_ga.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <pagmo/problem.hpp>
#include <pagmo/s11n.hpp>

#include "search/algorithm.hpp"
#include "search/variation.hpp"

namespace nas {

namespace {

using Vector = std::vector<double>;

const Requirement require{"evo_ga"};

void require_probability(const std::string& name, double value) {
  require(value >= 0.0 && value <= 1.0, name, value, "in [0, 1]");
}

/// Indices of the individuals, best first; ties by age, NaN last.
std::vector<std::size_t> ranking(const std::vector<double>& fitness) {
  std::vector<std::size_t> order(fitness.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&fitness](std::size_t a, std::size_t b) {
    if (std::isnan(fitness[b])) return !std::isnan(fitness[a]);
    return fitness[a] < fitness[b];
  });
  return order;
}

}  // namespace

void EvoGaOptions::check() const {
  require(generations >= 1, "generations", generations, ">= 1");
  require(elite >= 1, "elite", elite, ">= 1");
  require(parents >= 1, "parents", parents, ">= 1");
  require_probability("crossover", crossover);
  require_probability("mutation", mutation);
}

double EvoGa::mutation_rate(unsigned generation) const {
  if (!options_.adaptive_mutation) return options_.mutation;
  return 0.5 * std::pow(0.5, static_cast<double>(generation) / options_.generations);
}

Vector EvoGa::offspring(const std::vector<Vector>& parents, const pagmo::problem& problem,
                        double rate) const {
  const auto& first = parents[below(engine_, parents.size())];
  const auto& second = parents[below(engine_, parents.size())];
  Vector child = first;
  if (uniform(engine_) < options_.crossover) {
    for (std::size_t gene = 0; gene < child.size(); ++gene) {
      if (uniform(engine_) < 0.5) child[gene] = second[gene];
    }
  }
  const auto& [lower, upper] = problem.get_bounds();
  const std::size_t num_reals = child.size() - problem.get_nix();
  for (const auto gene : changeable(child, problem)) {
    if (uniform(engine_) >= rate) continue;
    const double range = upper[gene] - lower[gene];
    if (options_.flip_binary && gene >= num_reals && range == 1.0) {
      child[gene] = lower[gene] + upper[gene] - child[gene];
      continue;
    }
    child[gene] = gene < num_reals
                      ? lower[gene] + uniform(engine_) * range
                      : lower[gene] + static_cast<double>(
                                          below(engine_, static_cast<std::size_t>(range) + 1));
  }
  return child;
}

pagmo::population EvoGa::evolve(pagmo::population population) const {
  const pagmo::problem& problem = population.get_problem();
  const std::size_t size = population.size();
  require_suitable("evo_ga", population, /*single=*/true);
  require(options_.elite <= size, "elite", options_.elite,
          "at most the population, " + std::to_string(size));
  require(options_.parents <= size, "parents", options_.parents,
          "at most the population, " + std::to_string(size));

  std::vector<Vector> individuals = population.get_x();
  std::vector<double> fitness;
  for (const auto& f : population.get_f()) fitness.push_back(f.front());
  for (unsigned generation = 1; generation < options_.generations; ++generation) {
    const auto order = ranking(fitness);
    std::vector<Vector> parents;
    for (std::size_t i = 0; i < options_.parents; ++i) parents.push_back(individuals[order[i]]);
    std::vector<Vector> children;
    for (std::size_t i = options_.elite; i < size; ++i) {
      children.push_back(offspring(parents, problem, mutation_rate(generation)));
    }
    if (children.empty()) break;
    const auto child_fitness = evaluate(problem, children);

    std::vector<Vector> next;
    std::vector<double> next_fitness;
    for (std::size_t i = 0; i < options_.elite; ++i) {
      next.push_back(individuals[order[i]]);
      next_fitness.push_back(fitness[order[i]]);
    }
    next.insert(next.end(), children.begin(), children.end());
    for (const auto& values : child_fitness) next_fitness.push_back(values.front());
    individuals = std::move(next);
    fitness = std::move(next_fitness);
  }
  for (std::size_t i = 0; i < size; ++i) population.set_xf(i, individuals[i], {fitness[i]});
  return population;
}

namespace {

using Integer = std::int64_t;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

pagmo::algorithm make(const Parameters& parameters, const SearchFacts& /*facts*/,
                      std::uint32_t seed) {
  auto options = options_from<EvoGaOptions>(parameters);
  options.adaptive_mutation = parameters.get<std::string>("mutation_schedule") == "adaptive";
  options.flip_binary = parameters.get<std::string>("binary") == "flip";
  return pagmo::algorithm(EvoGa(options, seed));
}

std::vector<Misfit> fit(Parameters& parameters, const SearchFacts& /*facts*/) {
  const auto population = parameters.get<Integer>("population");
  std::vector<Misfit> misfits;
  for (const auto* name : {"elite", "parents"}) {
    if (parameters.get<Integer>(name) > population) {
      misfits.push_back(
          {name, "must be at most algorithm.population = " + std::to_string(population)});
    }
  }
  if (parameters.get<Integer>("elite") == population &&
      parameters.get<Integer>("generations") > 1) {
    misfits.push_back({"elite", "must be less than algorithm.population = " +
                                    std::to_string(population) + ": no child would have a place"});
  }
  return misfits;
}

Algorithm evo_ga() {
  return {.objectives = Algorithm::Objectives::one, .batches = true, .fit = fit, .make = make};
}

NAS_REGISTER_ALGORITHM(
    {.key = "evo_ga",
     .summary = "the EvoAttention paper's genetic algorithm: elites, truncation selection, uniform "
                "crossover, redraw mutation (Mohabeer 2025)",
     .settings = {generations_setting(10),
                  integer_setting("elite", 3, 1, kNoLimit,
                                  "best individuals that survive and are not evaluated again"),
                  integer_setting(
                      "parents", 6, 1, kNoLimit,
                      "best individuals from which parents are drawn, with replacement"),
                  number_setting("crossover", 0.7, 0, 1,
                                 "probability that a child takes each gene from either parent"),
                  number_setting("mutation", 0.3, 0, 1,
                                 "probability per gene to be redrawn from its whole range"),
                  choice_setting("mutation_schedule", {"constant", "adaptive"},
                                 "constant: the rate is `mutation`; adaptive: it is 0.5 * "
                                 "0.5^(generation / generations)"),
                  choice_setting("binary", {"redraw", "flip"},
                                 "a mutated gene of two options: redraw leaves it as it is half of "
                                 "the time; flip takes "
                                 "the other option, as the published code does")},
     .file = __FILE__},
    evo_ga);

}  // namespace

}  // namespace nas

PAGMO_S11N_ALGORITHM_IMPLEMENT(nas::EvoGa)
