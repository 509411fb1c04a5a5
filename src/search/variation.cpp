#include "search/variation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>

#include "core/format.hpp"
#include "search/fronts.hpp"
#include "search/search.hpp"

namespace nas {

namespace {

using Vector = std::vector<double>;

std::size_t num_reals(const pagmo::problem& problem) {
  return problem.get_nx() - problem.get_nix();
}

}  // namespace

double uniform(std::mt19937& engine) { return static_cast<double>(engine()) * 0x1.0p-32; }

std::size_t below(std::mt19937& engine, std::size_t n) {
  return static_cast<std::size_t>(uniform(engine) * static_cast<double>(n));
}

std::vector<std::size_t> shuffled(std::size_t n, std::mt19937& engine) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[below(engine, i)]);
  return order;
}

Vector random_point(const pagmo::problem& problem, std::mt19937& engine) {
  const auto [lower, upper] = problem.get_bounds();
  Vector point;
  for (std::size_t i = 0; i < lower.size(); ++i) {
    const double range = upper[i] - lower[i];
    point.push_back(
        lower[i] + (i < num_reals(problem)
                        ? uniform(engine) * range
                        : static_cast<double>(below(engine, static_cast<std::size_t>(range) + 1))));
  }
  return point;
}

void redraw(Vector& point, std::size_t variable, const pagmo::problem& problem,
            std::mt19937& engine) {
  const auto [lower, upper] = problem.get_bounds();
  const double range = upper[variable] - lower[variable];
  if (range == 0.0) return;
  if (variable < num_reals(problem)) {
    point[variable] = lower[variable] + uniform(engine) * range;
    return;
  }
  const double other =
      lower[variable] + static_cast<double>(below(engine, static_cast<std::size_t>(range)));
  point[variable] = other < point[variable] ? other : other + 1.0;
}

bool is_finite(const Vector& fitness) {
  return std::all_of(fitness.begin(), fitness.end(),
                     [](double value) { return std::isfinite(value); });
}

std::vector<bool> active_variables(const Vector& point, const pagmo::problem& problem) {
  const auto* search = problem.extract<SearchProblem>();
  return search != nullptr ? search->active(point) : std::vector<bool>(point.size(), true);
}

std::vector<std::size_t> changeable(const Vector& point, const pagmo::problem& problem) {
  const auto active = active_variables(point, problem);
  std::vector<std::size_t> variables;
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (active[i]) variables.push_back(i);
  }
  if (variables.empty()) {
    variables.resize(point.size());
    std::iota(variables.begin(), variables.end(), std::size_t{0});
  }
  return variables;
}

Vector effective_point(const Vector& point, const pagmo::problem& problem) {
  const auto* search = problem.extract<SearchProblem>();
  const auto active = active_variables(point, problem);
  const auto lower = problem.get_lb();
  auto effective = search != nullptr && num_reals(problem) > 0 ? search->evaluated(point) : point;
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (!active[i]) effective[i] = lower[i];
  }
  return effective;
}

double num_points(const pagmo::problem& problem) {
  if (num_reals(problem) > 0) return std::numeric_limits<double>::infinity();
  const auto [lower, upper] = problem.get_bounds();
  double product = 1.0;
  for (std::size_t i = 0; i < lower.size(); ++i) product *= upper[i] - lower[i] + 1.0;
  return product;
}

UnseenPoints::UnseenPoints(const pagmo::problem& problem, const std::vector<Vector>& seen)
    : problem_(problem), total_(num_points(problem)), seen_(seen.begin(), seen.end()) {}

Vector UnseenPoints::draw(std::mt19937& engine) {
  if (std::isinf(total_)) return random_point(problem_, engine);
  const double left = total_ - static_cast<double>(seen_.size());
  if (left < 1.0) return {};
  // Drawing until one is unseen takes total / left draws: cheap until few are left.
  constexpr double kFew = 0.01;
  while (left > kFew * total_) {
    auto point = random_point(problem_, engine);
    if (seen_.insert(point).second) return point;
  }
  auto place = below(engine, static_cast<std::size_t>(left));
  auto [point, upper] = problem_.get_bounds();
  const auto lower = point;
  for (bool more = true; more;) {
    if (!seen_.contains(point) && place-- == 0) break;
    more = false;
    for (std::size_t i = point.size(); i-- > 0 && !more;) {
      if (point[i] < upper[i]) {
        point[i] += 1.0;
        more = true;
      } else {
        point[i] = lower[i];
      }
    }
  }
  seen_.insert(point);
  return point;
}

std::vector<Vector> evaluate(const pagmo::problem& problem, const std::vector<Vector>& batch) {
  std::vector<Vector> fitness;
  if (!problem.has_batch_fitness()) {
    for (const auto& point : batch) fitness.push_back(problem.fitness(point));
    return fitness;
  }
  Vector joined;
  for (const auto& point : batch) joined.insert(joined.end(), point.begin(), point.end());
  const auto values = problem.batch_fitness(joined);
  const auto length = static_cast<std::ptrdiff_t>(problem.get_nf());
  for (auto i = values.begin(); i != values.end(); i += length) {
    fitness.emplace_back(i, i + length);
  }
  return fitness;
}

void Requirement::operator()(bool holds, const std::string& name, double value,
                             const std::string& allowed) const {
  if (holds) return;
  throw std::invalid_argument(std::string(algorithm) + ": " + name + " = " + shortest(value) +
                              ", must be " + allowed);
}

void require_suitable(const std::string& algorithm, const pagmo::population& population,
                      bool single, std::size_t least) {
  const auto& problem = population.get_problem();
  const auto refuse = [&algorithm](const std::string& what) {
    throw std::invalid_argument(algorithm + ": " + what);
  };
  if (single && problem.get_nobj() != 1) {
    refuse("objectives of the problem = " + std::to_string(problem.get_nobj()) + ", must be 1");
  }
  if (problem.get_nc() != 0) {
    refuse("constraints of the problem = " + std::to_string(problem.get_nc()) + ", must be 0");
  }
  if (problem.is_stochastic()) refuse("the problem is stochastic, must be deterministic");
  if (population.size() < least) refuse("the population is empty, must have an individual");
}

void AskedPoints::ask(const std::vector<Vector>& batch) {
  const auto values = evaluate(population_.get_problem(), batch);
  points_.insert(points_.end(), batch.begin(), batch.end());
  fitness_.insert(fitness_.end(), values.begin(), values.end());
}

void AskedPoints::add(const Vector& point, const Vector& fitness) {
  points_.push_back(point);
  fitness_.push_back(fitness);
}

double AskedPoints::value(std::size_t i) const {
  const double value = fitness_[i].front();
  return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
}

pagmo::population AskedPoints::best() const {
  if (points_.empty()) return population_;
  std::vector<std::size_t> order(points_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (fitness_.front().size() == 1) {
    std::stable_sort(order.begin(), order.end(),
                     [this](std::size_t a, std::size_t b) { return value(a) < value(b); });
  } else {
    ByPoint asked;
    for (std::size_t i = 0; i < fitness_.size(); ++i) {
      auto values = fitness_[i];
      // NaN becomes the worst there is, in every objective.
      if (std::any_of(values.begin(), values.end(), [](double v) { return std::isnan(v); })) {
        values.assign(values.size(), std::numeric_limits<double>::infinity());
      }
      asked[std::move(values)].push_back(i);
    }
    order.clear();
    for (const auto& front : fronts_of(asked)) {
      const auto first = std::ssize(order);
      for (const auto& values : front) {
        const auto& equal = asked.at(values);
        order.insert(order.end(), equal.begin(), equal.end());
      }
      std::sort(order.begin() + first, order.end());
    }
  }
  std::set<Vector> seen;
  std::stable_partition(order.begin(), order.end(),
                        [&](std::size_t i) { return seen.insert(points_[i]).second; });
  auto population = population_;
  for (std::size_t i = 0; i < population.size(); ++i) {
    population.set_xf(i, points_[order[i]], fitness_[order[i]]);
  }
  return population;
}

}  // namespace nas
