#include "algorithms/nspso.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <pagmo/problem.hpp>
#include <pagmo/s11n.hpp>
#include <pagmo/utils/multi_objective.hpp>

#include "search/algorithm.hpp"
#include "search/genetic_variation.hpp"
#include "search/variation.hpp"

namespace nas {

namespace {

using Vector = std::vector<double>;
using Points = std::vector<Vector>;
using Indices = std::vector<std::size_t>;

constexpr const char* kCrowding = "crowding distance";
constexpr const char* kNiches = "niche count";
constexpr const char* kMaxMin = "max min";

const Requirement require{"nspso"};

/// The order in which some values ascend; of equal ones as they are.
Indices ascending(const Vector& values) {
  Indices order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&values](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  return order;
}

/// Of each point the largest, over the others, least difference in an objective: below 0 for a
/// non-dominated one, the lower the farther others are (Balling 2003).
Vector max_mins(const Points& fitness) {
  Vector result(fitness.size(), -std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < fitness.size(); ++i) {
    for (std::size_t j = 0; j < fitness.size(); ++j) {
      if (i == j) continue;
      double least = fitness[i].empty() ? 0.0 : std::numeric_limits<double>::infinity();
      for (std::size_t m = 0; m < fitness[i].size(); ++m) {
        least = std::min(least, fitness[i][m] - fitness[j][m]);
      }
      result[i] = std::max(result[i], least);
    }
  }
  return result;
}

/// The radius of a niche among n points whose objectives have these ranges: that of n niches that
/// fill what lies between the least and the largest sum of ranges (Fonseca & Fleming 1993), for more
/// than three objectives the edge of a cube of their volume.
double niche_radius(const Vector& ranges, double n) {
  const double sum = std::accumulate(ranges.begin(), ranges.end(), 0.0);
  if (ranges.size() <= 2) return sum / (n - 1.0);
  double product = 1.0;
  for (const double range : ranges) product *= range;
  return std::pow(product, 1.0 / static_cast<double>(ranges.size())) / n;
}

/// Of each point how many, itself included, lie within a radius.
Vector niche_counts(const Points& points, double radius) {
  Vector counts(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (const auto& other : points) {
      double squares = 0.0;
      for (std::size_t v = 0; v < other.size(); ++v) {
        squares += (points[i][v] - other[v]) * (points[i][v] - other[v]);
      }
      counts[i] += std::sqrt(squares) < radius ? 1.0 : 0.0;
    }
  }
  return counts;
}

/// A front in the order of its niche counts.
Indices by_niches(const Indices& front, const Points& points, const Points& fitness) {
  Points members;
  for (const auto i : front) members.push_back(points[i]);
  const auto objectives = differing_objectives(fitness);
  Vector ranges;
  for (std::size_t m = 0; m < objectives.front().size(); ++m) {
    const auto [least, most] =
        std::minmax_element(objectives.begin(), objectives.end(),
                            [m](const Vector& a, const Vector& b) { return a[m] < b[m]; });
    ranges.push_back((*most)[m] - (*least)[m]);
  }
  const auto radius = niche_radius(ranges, static_cast<double>(front.size()));
  Indices result;
  for (const auto i : ascending(niche_counts(members, radius))) result.push_back(front[i]);
  return result;
}

}  // namespace

void NspsoOptions::check() const {
  require(generations >= 1, "generations", generations, ">= 1");
  require(inertia >= 0.0 && inertia <= 1.0, "inertia", inertia, "in [0, 1]");
  require(own_pull > 0.0, "own_pull", own_pull, "> 0");
  require(leader_pull > 0.0, "leader_pull", leader_pull, "> 0");
  require(largest_velocity > 0.0 && largest_velocity <= 1.0, "largest_velocity", largest_velocity,
          "in (0, 1]");
  require(leaders >= 1 && leaders <= 100, "leaders", leaders, "in [1, 100]");
  if (diversity != kCrowding && diversity != kNiches && diversity != kMaxMin) {
    throw std::invalid_argument("nspso: diversity = " + diversity + ", must be " + kCrowding +
                                ", " + kNiches + " or " + kMaxMin);
  }
}

Indices Nspso::leaders(const Points& points, const Points& fitness) const {
  Indices found;
  std::size_t number = 0;
  if (options_.diversity == kMaxMin) {
    const auto values = max_mins(differing_objectives(fitness));
    found = ascending(values);
    number = static_cast<std::size_t>(
        std::count_if(values.begin(), values.end(), [](double value) { return value < 0.0; }));
  } else {
    const CrowdedRanking ranking(fitness);
    number = ranking.first_front().size();
    found = options_.diversity == kNiches && number > 1
                ? by_niches(ranking.first_front(), points, fitness)
                : ranking.sorted();
  }
  const double share = static_cast<double>(options_.leaders) / 100.0;
  const double drawn = std::ceil(static_cast<double>(number) * share);
  // Two at least, so that a particle has a leader other than itself.
  found.resize(std::max<std::size_t>(2, static_cast<std::size_t>(drawn)));
  return found;
}

Indices Nspso::best(const Points& fitness, std::size_t count) const {
  auto order = options_.diversity == kMaxMin ? ascending(max_mins(differing_objectives(fitness)))
                                             : CrowdedRanking(fitness).sorted();
  order.resize(count);
  return order;
}

double Nspso::largest_step(std::size_t variable, const std::pair<Vector, Vector>& bounds) const {
  return options_.largest_velocity * (bounds.second[variable] - bounds.first[variable]);
}

void Nspso::move(Vector& particle, Vector& velocity, const Vector& own, const Vector& leader,
                 const std::pair<Vector, Vector>& bounds) const {
  const double pull = options_.own_pull * uniform(engine_);
  const double pull_of_leader = options_.leader_pull * uniform(engine_);
  for (std::size_t v = 0; v < particle.size(); ++v) {
    double& x = particle[v];
    const double limit = largest_step(v, bounds);
    velocity[v] = std::clamp(
        options_.inertia * velocity[v] + pull * (own[v] - x) + pull_of_leader * (leader[v] - x),
        -limit, limit);
    const double moved = x + velocity[v];
    x = std::clamp(moved, bounds.first[v], bounds.second[v]);
    if (x != moved) velocity[v] = 0.0;
  }
}

pagmo::population Nspso::evolve(pagmo::population population) const {
  require_suitable("nspso", population, /*single=*/false);
  const pagmo::problem& problem = population.get_problem();
  const std::size_t size = population.size();
  require(problem.get_nobj() >= 2, "objectives of the problem",
          static_cast<double>(problem.get_nobj()), ">= 2");
  require(size >= 2, "population", static_cast<double>(size), ">= 2");

  log_.clear();
  const auto bounds = problem.get_bounds();
  auto particles = population.get_x();
  auto fitness = population.get_f();
  auto bests = particles;
  auto of_bests = fitness;
  Points velocities(size, Vector(bounds.first.size()));
  for (auto& velocity : velocities) {
    for (std::size_t v = 0; v < velocity.size(); ++v) {
      velocity[v] = largest_step(v, bounds) * (2.0 * uniform(engine_) - 1.0);
    }
  }
  unsigned long long evaluations = size;
  for (unsigned generation = 0;; ++generation) {
    record("nspso", {"generation", "evaluations", "best"},
           {generation, evaluations, pagmo::ideal(of_bests)});
    if (generation + 1 >= options_.generations) break;
    const auto led = leaders(bests, of_bests);
    for (std::size_t i = 0; i < size; ++i) {
      std::size_t leader = i;
      while (leader == i) leader = led[below(engine_, led.size())];
      move(particles[i], velocities[i], bests[i], bests[leader], bounds);
    }
    fitness = evaluate(problem, particles);
    evaluations += size;
    auto all = particles;
    auto of_all = fitness;
    all.insert(all.end(), bests.begin(), bests.end());
    of_all.insert(of_all.end(), of_bests.begin(), of_bests.end());
    const auto kept = best(of_all, size);
    for (std::size_t i = 0; i < size; ++i) {
      bests[i] = all[kept[i]];
      of_bests[i] = of_all[kept[i]];
    }
  }
  for (std::size_t i = 0; i < size; ++i) population.set_xf(i, particles[i], fitness[i]);
  return population;
}

namespace {

Setting pull_setting(std::string name, std::string help) {
  auto setting = number_setting(std::move(name), 2.0, 0, 4, std::move(help));
  setting.min_exclusive = true;
  return setting;
}

NAS_REGISTER_ALGORITHM(
    {.key = "nspso",
     .summary = "non-dominated sorting particle swarm (Li 2003)",
     .settings = {generations_setting(20),
                  number_setting("inertia", 0.6, 0, 1, "inertia weight omega"),
                  pull_setting("own_pull", "weight c1 of the pull towards a particle's own best"),
                  pull_setting("leader_pull", "weight c2 of the pull towards a leader"),
                  number_setting("largest_velocity", 0.5, 1e-6, 1,
                                 "largest step of a particle, as a share of the range"),
                  integer_setting("leaders", 60, 1, 100,
                                  "percentage of best particles from which leaders are drawn"),
                  choice_setting("diversity", {kCrowding, kNiches, kMaxMin},
                                 "by what leaders are chosen, so that the front stays diverse")},
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::several,
                       .encoding = Encoding::relaxed,
                       .batches = true,
                       .min_population = 2,
                       .make = make_seeded<Nspso>};
    });

}  // namespace

}  // namespace nas

PAGMO_S11N_ALGORITHM_IMPLEMENT(nas::Nspso)
