#include "search/genetic_variation.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include <pagmo/utils/multi_objective.hpp>

#include "search/fronts.hpp"

namespace nas {

namespace {

using Vector = std::vector<double>;

}  // namespace

void VariationOptions::check(const Requirement& require) const {
  require(crossover >= 0 && crossover <= 1, "crossover", crossover, "in [0, 1]");
  require(eta_c >= 0 && std::isfinite(eta_c), "eta_c", eta_c, ">= 0");
  require(mutation >= 0 && mutation <= 1, "mutation", mutation, "in [0, 1]");
  require(eta_m >= 0 && std::isfinite(eta_m), "eta_m", eta_m, ">= 0");
}

GeneticVariation::GeneticVariation(const pagmo::problem& problem, const VariationOptions& options,
                                   std::mt19937& engine, const std::vector<Vector>& asked)
    : problem_(problem),
      options_(options),
      engine_(engine),
      num_reals_(problem.get_nx() - problem.get_nix()) {
  std::tie(lower_, upper_) = problem.get_bounds();
  for (std::size_t i = 0; i < lower_.size(); ++i) {
    if (upper_[i] > lower_[i]) free_.push_back(i);
  }
  rate_ = options.mutation > 0 ? options.mutation
                               : 1.0 / static_cast<double>(std::max<std::size_t>(1, free_.size()));
  for (const auto& x : asked) known_.insert(effective_point(x, problem));
}

std::vector<std::vector<double>> GeneticVariation::offspring(const std::vector<Vector>& parents,
                                                             std::size_t count) {
  std::vector<Vector> children;
  for (std::size_t i = 0; i < parents.size(); i += 2) {
    std::pair pair{parents[i], parents[i + 1]};
    cross(pair.first, pair.second);
    for (auto* child : {&pair.first, &pair.second}) {
      if (children.size() == count) break;
      mutate(*child);
      renew(*child);
      known_.insert(effective_point(*child, problem_));
      children.push_back(std::move(*child));
    }
  }
  return children;
}

std::vector<double> GeneticVariation::child(Vector parent, Vector other) {
  cross(parent, other);
  mutate(parent);
  renew(parent);
  for (int tries = 0; tries < kTriesForNewPoint && is_known(parent); ++tries) {
    parent = random_point(problem_, engine_);
  }
  known_.insert(effective_point(parent, problem_));
  return parent;
}

bool GeneticVariation::is_known(const Vector& x) const {
  return known_.contains(effective_point(x, problem_));
}

void GeneticVariation::renew(Vector& x) const {
  for (int tries = 0; tries < kTriesForNewPoint && is_known(x); ++tries) change_one(x);
}

void GeneticVariation::cross(Vector& a, Vector& b) const {
  if (uniform(engine_) >= options_.crossover) return;
  for (const auto i : free_) {
    if (uniform(engine_) >= 0.5) continue;
    if (i < num_reals_) cross_reals(i, a[i], b[i]);
    // Crossed reals go to either child; integers are exchanged or nothing happens to them.
    if (i >= num_reals_ || uniform(engine_) < 0.5) std::swap(a[i], b[i]);
  }
}

void GeneticVariation::cross_reals(std::size_t variable, double& a, double& b) const {
  const double lower = lower_[variable];
  const double upper = upper_[variable];
  const double low = std::min(a, b);
  const double high = std::max(a, b);
  const double distance = high - low;
  const double random = uniform(engine_);
  if (!(distance > 1e-14 * (upper - lower))) return;
  const double down = spread_factor(random, low - lower, distance);
  const double up = spread_factor(random, upper - high, distance);
  a = std::clamp(0.5 * (low + high - down * distance), lower, upper);
  b = std::clamp(0.5 * (low + high + up * distance), lower, upper);
}

/// One child's share of the spread, such that it stays on its side of `room`, the distance of the
/// parent to the bound.
double GeneticVariation::spread_factor(double random, double room, double distance) const {
  const double power = options_.eta_c + 1;
  const double alpha = 2.0 - std::pow(1.0 + 2.0 * room / distance, -power);
  const double share = random * alpha;
  return std::pow(share <= 1.0 ? share : 1.0 / (2.0 - share), 1.0 / power);
}

void GeneticVariation::mutate(Vector& x) const {
  for (const auto i : effective(x)) {
    if (uniform(engine_) < rate_) change(x, i);
  }
}

void GeneticVariation::change_one(Vector& x) const {
  const auto variables = effective(x);
  if (variables.empty()) return;
  change(x, variables[below(engine_, variables.size())]);
}

void GeneticVariation::change(Vector& x, std::size_t variable) const {
  if (variable >= num_reals_) {
    redraw(x, variable, problem_, engine_);
    return;
  }
  double& value = x[variable];
  const double lower = lower_[variable];
  const double upper = upper_[variable];
  const double range = upper - lower;
  const double power = options_.eta_m + 1;
  const double random = uniform(engine_);
  const double step =
      random < 0.5
          ? std::pow(2 * random + (1 - 2 * random) * std::pow(1 - (value - lower) / range, power),
                     1 / power) -
                1
          : 1 - std::pow(2 * (1 - random) +
                             (2 * random - 1) * std::pow(1 - (upper - value) / range, power),
                         1 / power);
  value = std::clamp(value + step * range, lower, upper);
}

/// Free variables that have an effect in a point.
std::vector<std::size_t> GeneticVariation::effective(const Vector& x) const {
  const auto active = active_variables(x, problem_);
  std::vector<std::size_t> variables;
  for (const auto i : free_) {
    if (active[i]) variables.push_back(i);
  }
  return variables;
}

std::vector<std::vector<double>> differing_objectives(
    const std::vector<std::vector<double>>& points) {
  std::vector<std::vector<double>> result(points.size());
  for (std::size_t m = 0; m < points.front().size(); ++m) {
    const bool constant = std::all_of(
        points.begin(), points.end(),
        [&](const std::vector<double>& point) { return point[m] == points.front()[m]; });
    if (constant) continue;
    for (std::size_t i = 0; i < points.size(); ++i) result[i].push_back(points[i][m]);
  }
  return result;
}

CrowdedRanking::CrowdedRanking(const std::vector<std::vector<double>>& fitness)
    : crowding_(fitness.size()) {
  auto sorted = pagmo::fast_non_dominated_sorting(fitness);
  fronts_ = std::move(std::get<0>(sorted));
  ranks_ = std::move(std::get<3>(sorted));
  for (const auto& front : fronts_) {
    Points members;
    for (const auto i : front) members.push_back(fitness[i]);
    const auto distances = crowding(members);
    for (std::size_t i = 0; i < front.size(); ++i) crowding_[front[i]] = distances[i];
  }
}

std::size_t CrowdedRanking::winner(std::size_t a, std::size_t b, std::mt19937& engine) const {
  if (ranks_[a] != ranks_[b]) return ranks_[a] < ranks_[b] ? a : b;
  if (crowding_[a] > crowding_[b]) return a;
  if (crowding_[a] < crowding_[b]) return b;
  return uniform(engine) < 0.5 ? a : b;
}

std::vector<std::size_t> CrowdedRanking::best(std::size_t count) const {
  std::vector<std::size_t> best;
  for (auto front : fronts_) {
    if (best.size() + front.size() > count) {
      std::sort(front.begin(), front.end(),
                [this](std::size_t a, std::size_t b) { return crowding_[a] > crowding_[b]; });
      front.resize(count - best.size());
    }
    best.insert(best.end(), front.begin(), front.end());
  }
  return best;
}

std::vector<std::size_t> CrowdedRanking::sorted() const {
  std::vector<std::size_t> sorted;
  for (auto front : fronts_) {
    std::stable_sort(front.begin(), front.end(),
                     [this](std::size_t a, std::size_t b) { return crowding_[a] > crowding_[b]; });
    sorted.insert(sorted.end(), front.begin(), front.end());
  }
  return sorted;
}

std::size_t CrowdedRanking::worst() const {
  std::size_t worst = 0;
  for (std::size_t i = 1; i < ranks_.size(); ++i) {
    if (ranks_[i] < ranks_[worst]) continue;
    if (ranks_[i] > ranks_[worst] || crowding_[i] <= crowding_[worst]) worst = i;
  }
  return worst;
}

}  // namespace nas
