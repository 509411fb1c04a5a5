#include "algorithms/nsga3.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include <pagmo/problem.hpp>
#include <pagmo/s11n.hpp>
#include <pagmo/utils/multi_objective.hpp>

#include "core/format.hpp"
#include "search/algorithm.hpp"
#include "search/genetic_variation.hpp"
#include "search/variation.hpp"

namespace nas {

namespace {

using Vector = std::vector<double>;
using Indices = std::vector<std::size_t>;

const Requirement require{"nsga3"};

struct Individual {
  Vector x;
  Vector f;
};

struct Ranking {
  std::vector<Indices> fronts;  ///< of the distinct individuals that have a fitness, best first
  Indices rest;                 ///< copies of older individuals, then those without fitness
};

Ranking rank(const std::vector<Individual>& individuals) {
  Ranking ranking;
  Indices distinct;
  Indices failed;
  std::set<Vector> seen;
  for (std::size_t i = 0; i < individuals.size(); ++i) {
    if (!is_finite(individuals[i].f)) {
      failed.push_back(i);
    } else if (seen.insert(individuals[i].x).second) {
      distinct.push_back(i);
    } else {
      ranking.rest.push_back(i);
    }
  }
  ranking.rest.insert(ranking.rest.end(), failed.begin(), failed.end());
  if (distinct.size() < 2) {  // pagmo refuses to sort these
    if (!distinct.empty()) ranking.fronts.push_back(distinct);
    return ranking;
  }
  std::vector<Vector> fitness;
  for (const auto i : distinct) fitness.push_back(individuals[i].f);
  const auto sorted = pagmo::fast_non_dominated_sorting(fitness);
  for (const auto& front : std::get<0>(sorted)) {
    Indices indices;
    for (const auto i : front) indices.push_back(distinct[i]);
    std::sort(indices.begin(), indices.end());
    ranking.fronts.push_back(std::move(indices));
  }
  return ranking;
}

/// Solves `matrix` x = 1 by elimination with pivots.
/// @return empty if the matrix is singular.
Vector solve_for_ones(std::vector<Vector> matrix) {
  const std::size_t size = matrix.size();
  Vector x(size, 1.0);
  for (std::size_t column = 0; column < size; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < size; ++row) {
      if (std::abs(matrix[row][column]) > std::abs(matrix[pivot][column])) pivot = row;
    }
    if (!(std::abs(matrix[pivot][column]) > 1e-10)) return {};
    std::swap(matrix[pivot], matrix[column]);
    std::swap(x[pivot], x[column]);
    for (std::size_t row = 0; row < size; ++row) {
      if (row == column) continue;
      const double factor = matrix[row][column] / matrix[column][column];
      for (std::size_t k = column; k < size; ++k) matrix[row][k] -= factor * matrix[column][k];
      x[row] -= factor * x[column];
    }
  }
  for (std::size_t i = 0; i < size; ++i) x[i] /= matrix[i][i];
  return x;
}

/// Largest f_i - ideal_i of some individuals, per objective.
Vector spread(const std::vector<Individual>& individuals, const Indices& members,
              const Vector& ideal) {
  Vector largest(ideal.size(), 0.0);
  for (const auto member : members) {
    for (std::size_t i = 0; i < ideal.size(); ++i) {
      largest[i] = std::max(largest[i], individuals[member].f[i] - ideal[i]);
    }
  }
  return largest;
}

/// Objectives of `members` relative to the ideal point and the intercepts; finite.
std::vector<Vector> normalized(const std::vector<Individual>& individuals, const Indices& members,
                               const Indices& first_front, const Vector& ideal) {
  Vector scale = spread(individuals, first_front, ideal);
  const Vector largest = spread(individuals, members, ideal);
  for (std::size_t i = 0; i < scale.size(); ++i) {
    if (!(scale[i] > 0)) scale[i] = largest[i] > 0 ? largest[i] : 1.0;
  }
  std::vector<Vector> points;
  for (const auto member : members) {
    Vector point = individuals[member].f;
    // A penalty may be so large that its square is no number.
    for (std::size_t i = 0; i < point.size(); ++i) {
      point[i] = std::clamp(point[i] - ideal[i], 0.0, 1e6 * scale[i]);
    }
    points.push_back(std::move(point));
  }
  const Vector cuts = axis_intercepts(points, scale);
  for (auto& point : points) {
    for (std::size_t i = 0; i < point.size(); ++i) point[i] /= cuts[i];
  }
  return points;
}

struct Niche {
  std::size_t reference;
  double distance;  ///< squared
};

/// The reference point whose direction from the origin is nearest.
Niche nearest(const Vector& point, const std::vector<Vector>& references) {
  Niche niche{0, std::numeric_limits<double>::infinity()};
  for (std::size_t r = 0; r < references.size(); ++r) {
    const auto& direction = references[r];
    const double along =
        std::inner_product(point.begin(), point.end(), direction.begin(), 0.0) /
        std::inner_product(direction.begin(), direction.end(), direction.begin(), 0.0);
    double distance = 0;
    for (std::size_t i = 0; i < point.size(); ++i) {
      const double across = point[i] - along * direction[i];
      distance += across * across;
    }
    if (distance < niche.distance) niche = {r, distance};
  }
  return niche;
}

/// Chooses `count` of `candidates`, one after the other, so that the reference directions get
/// equally many, those of `survivors` included.
Indices fill_niches(const std::vector<Individual>& individuals, const Indices& survivors,
                    const Indices& candidates, const Indices& first_front, std::size_t count,
                    const std::vector<Vector>& references, const Vector& ideal,
                    std::mt19937& engine) {
  Indices members = survivors;
  members.insert(members.end(), candidates.begin(), candidates.end());
  const auto points = normalized(individuals, members, first_front, ideal);
  Indices num_survivors(references.size(), 0);
  std::vector<std::vector<std::pair<double, std::size_t>>> waiting(references.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto niche = nearest(points[i], references);
    if (i < survivors.size()) {
      ++num_survivors[niche.reference];
    } else {
      waiting[niche.reference].emplace_back(niche.distance, members[i]);
    }
  }
  for (auto& candidate : waiting) std::sort(candidate.begin(), candidate.end());

  Indices chosen;
  while (chosen.size() < count) {
    Indices emptiest;
    for (std::size_t r = 0; r < references.size(); ++r) {
      if (waiting[r].empty()) continue;
      if (!emptiest.empty() && num_survivors[r] > num_survivors[emptiest.front()]) continue;
      if (!emptiest.empty() && num_survivors[r] < num_survivors[emptiest.front()]) emptiest.clear();
      emptiest.push_back(r);
    }
    const std::size_t reference = emptiest[below(engine, emptiest.size())];
    auto& queue = waiting[reference];
    const std::size_t place = num_survivors[reference] == 0 ? 0 : below(engine, queue.size());
    chosen.push_back(queue[place].second);
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(place));
    ++num_survivors[reference];
  }
  return chosen;
}

/// The `size` best of the individuals, best first.
Indices select(const std::vector<Individual>& individuals, const Ranking& ranking, std::size_t size,
               const std::vector<Vector>& references, const Vector& ideal, std::mt19937& engine) {
  Indices survivors;
  for (const auto& front : ranking.fronts) {
    if (survivors.size() + front.size() > size) {
      const auto chosen = fill_niches(individuals, survivors, front, ranking.fronts.front(),
                                      size - survivors.size(), references, ideal, engine);
      survivors.insert(survivors.end(), chosen.begin(), chosen.end());
      return survivors;
    }
    survivors.insert(survivors.end(), front.begin(), front.end());
  }
  for (const auto i : ranking.rest) {
    if (survivors.size() < size) survivors.push_back(i);
  }
  return survivors;
}

/// The population in random pairs; one individual is in two of them where their number is odd.
std::vector<Vector> pairs(const std::vector<Individual>& individuals, std::mt19937& engine) {
  auto order = shuffled(individuals.size(), engine);
  if (order.size() % 2 == 1) order.push_back(order.front());
  std::vector<Vector> parents;
  for (const auto i : order) parents.push_back(individuals[i].x);
  return parents;
}

void lower_ideal(Vector& ideal, const std::vector<Individual>& individuals) {
  for (const auto& individual : individuals) {
    if (!is_finite(individual.f)) continue;
    for (std::size_t i = 0; i < ideal.size(); ++i) ideal[i] = std::min(ideal[i], individual.f[i]);
  }
}

void append_points(std::vector<Vector>& points, Vector& point, std::size_t axis, std::size_t left,
                   std::size_t divisions) {
  const bool last = axis + 1 == point.size();
  for (std::size_t share = last ? left : 0; share <= left; ++share) {
    point[axis] = static_cast<double>(share) / static_cast<double>(divisions);
    if (last) {
      points.push_back(point);
    } else {
      append_points(points, point, axis + 1, left - share, divisions);
    }
  }
}

}  // namespace

double num_das_dennis_points(std::size_t num_objectives, std::size_t divisions) {
  double count = 1;
  for (std::size_t i = 1; i < num_objectives; ++i) {
    count = count * static_cast<double>(divisions + i) / static_cast<double>(i);
  }
  return count;
}

std::size_t fitted_divisions(std::size_t num_objectives, std::size_t population) {
  std::size_t divisions = 0;
  while (num_das_dennis_points(num_objectives, divisions + 1) <= static_cast<double>(population)) {
    ++divisions;
  }
  return divisions;
}

std::vector<Vector> das_dennis_points(std::size_t num_objectives, std::size_t divisions) {
  std::vector<Vector> points;
  Vector point(num_objectives);
  append_points(points, point, 0, divisions, divisions);
  return points;
}

Vector axis_intercepts(std::vector<Vector> points, const Vector& fallback) {
  constexpr double kTiny = 1e-6;
  const std::size_t num_objectives = fallback.size();
  // Bringing all to order 1 first moves no intercept, and makes the achievement function, and what
  // counts as degenerate, independent of units: perplexity is beside FLOPs here.
  for (auto& point : points) {
    for (std::size_t i = 0; i < num_objectives; ++i) point[i] /= fallback[i];
  }
  std::vector<Vector> extremes;
  for (std::size_t axis = 0; axis < num_objectives; ++axis) {
    const auto achievement = [axis](const Vector& point) {
      double worst = 0;
      for (std::size_t i = 0; i < point.size(); ++i) {
        worst = std::max(worst, i == axis ? point[i] : point[i] / kTiny);
      }
      return worst;
    };
    extremes.push_back(*std::min_element(
        points.begin(), points.end(),
        [&](const Vector& a, const Vector& b) { return achievement(a) < achievement(b); }));
  }
  Vector cuts = solve_for_ones(extremes);
  if (cuts.empty()) return fallback;
  for (std::size_t i = 0; i < num_objectives; ++i) {
    cuts[i] = 1.0 / cuts[i];
    if (!(cuts[i] >= kTiny && std::isfinite(cuts[i]))) return fallback;
    // A hyperplane almost parallel to an axis cuts it beyond everything that was seen.
    double largest = 0;
    for (const auto& point : points) largest = std::max(largest, point[i]);
    cuts[i] = std::min(cuts[i], std::max(largest, kTiny)) * fallback[i];
  }
  return cuts;
}

void Nsga3Options::check() const {
  require(generations >= 1, "generations", generations, ">= 1");
  VariationOptions::of(*this).check(require);
}

pagmo::population Nsga3::evolve(pagmo::population population) const {
  require_suitable("nsga3", population, /*single=*/false);
  const pagmo::problem& problem = population.get_problem();
  const std::size_t size = population.size();
  const std::size_t num_objectives = problem.get_nobj();
  require(num_objectives >= 2, "objectives of the problem", static_cast<double>(num_objectives),
          ">= 2");
  require(size >= 4, "population", static_cast<double>(size), ">= 4");
  require(size >= num_objectives, "population", static_cast<double>(size),
          "at least the number of objectives, " + std::to_string(num_objectives));
  const std::size_t most = fitted_divisions(num_objectives, size);
  require(options_.divisions <= most, "divisions", options_.divisions,
          "at most " + std::to_string(most) + ", which gives " +
              shortest(num_das_dennis_points(num_objectives, most)) +
              " reference points for a population of " + std::to_string(size));
  const auto references =
      das_dennis_points(num_objectives, options_.divisions > 0 ? options_.divisions : most);

  std::vector<Individual> individuals;
  for (std::size_t i = 0; i < size; ++i) {
    individuals.push_back({population.get_x()[i], population.get_f()[i]});
  }
  Vector ideal(num_objectives, std::numeric_limits<double>::max());
  GeneticVariation variation(problem, VariationOptions::of(options_), engine_, population.get_x());
  for (unsigned generation = 0;; ++generation) {
    lower_ideal(ideal, individuals);
    const auto ranking = rank(individuals);
    std::vector<Individual> survivors;
    for (const auto i : select(individuals, ranking, size, references, ideal, engine_)) {
      survivors.push_back(individuals[i]);
    }
    individuals = std::move(survivors);
    if (generation + 1 >= options_.generations) break;

    const auto children = variation.offspring(pairs(individuals, engine_), size);
    const auto fitness = evaluate(problem, children);
    for (std::size_t i = 0; i < children.size(); ++i) {
      individuals.push_back({children[i], fitness[i]});
    }
  }
  for (std::size_t i = 0; i < size; ++i) {
    population.set_xf(i, individuals[i].x, individuals[i].f);
  }
  return population;
}

namespace {

using Integer = std::int64_t;

std::vector<Misfit> fit(Parameters& parameters, const SearchFacts& facts) {
  fit_mutation(parameters, facts);
  // A single objective is refused elsewhere.
  if (facts.num_objectives < 2) return {};
  const auto population = parameters.get<Integer>("population");
  const auto most = static_cast<Integer>(
      fitted_divisions(facts.num_objectives, static_cast<std::size_t>(population)));
  if (most == 0) {
    return {{"population",
             "must be at least the number of objectives, " + std::to_string(facts.num_objectives)}};
  }
  const auto divisions = parameters.get<Integer>("divisions");
  if (divisions > most) {
    return {
        {"divisions",
         "must be at most " + std::to_string(most) + ": " + std::to_string(divisions) + " give " +
             shortest(
                 num_das_dennis_points(facts.num_objectives, static_cast<std::size_t>(divisions))) +
             " reference points, more than algorithm.population = " + std::to_string(population)}};
  }
  if (divisions == 0) parameters.set("divisions", most);
  return {};
}

Algorithm nsga3() {
  return {.objectives = Algorithm::Objectives::several,
          .batches = true,
          .min_population = 4,
          .fit = fit,
          .make = make_seeded<Nsga3>};
}

NAS_REGISTER_ALGORITHM(
    {.key = "nsga3",
     .summary = "NSGA-III: genetic algorithm whose survivors spread over reference directions "
                "(Deb & Jain 2014)",
     .settings =
         {generations_setting(50),
          number_setting("crossover", 0.9, 0, 1, "probability that a pair is crossed"),
          number_setting("eta_c", 30.0, 0, 1e6,
                         "distribution index of the crossover of real genes: larger, nearer to "
                         "the parents"),
          number_setting("mutation", 0.0, 0, 1,
                         "mutation probability per gene; 0 = 1 / number of genes"),
          number_setting("eta_m", 20.0, 0, 1e6,
                         "distribution index of the mutation of real genes: larger, nearer to "
                         "the parent"),
          integer_setting(
              "divisions", 0, 0, 1e6,
              "divisions of each objective, which place the reference points; 0 = the most "
              "that give no more points than the population")},
     .file = __FILE__},
    nsga3);

}  // namespace

}  // namespace nas

PAGMO_S11N_ALGORITHM_IMPLEMENT(nas::Nsga3)
