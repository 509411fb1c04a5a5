#include "algorithms/local_search.hpp"

#include <algorithm>
#include <map>

#include <pagmo/problem.hpp>
#include <pagmo/s11n.hpp>

#include "search/algorithm.hpp"
#include "search/variation.hpp"

namespace nas {

namespace {

using Vector = std::vector<double>;

const Requirement require{"local_search"};

/// The points that differ from one in one variable that has an effect, in random order.
std::vector<Vector> neighbours(const Vector& point, const pagmo::problem& problem, double step,
                               std::mt19937& engine) {
  const auto [lower, upper] = problem.get_bounds();
  const std::size_t num_reals = problem.get_nx() - problem.get_nix();
  std::vector<Vector> around;
  const auto add = [&](std::size_t variable, double value) {
    if (value == point[variable]) return;
    around.push_back(point);
    around.back()[variable] = value;
  };
  for (const auto i : changeable(point, problem)) {
    if (i < num_reals) {
      const double reach = step * (upper[i] - lower[i]);
      add(i, std::max(lower[i], point[i] - reach));
      add(i, std::min(upper[i], point[i] + reach));
    } else {
      for (double value = lower[i]; value <= upper[i]; value += 1.0) add(i, value);
    }
  }
  std::vector<Vector> ordered;
  for (const auto i : shuffled(around.size(), engine)) ordered.push_back(std::move(around[i]));
  return ordered;
}

}  // namespace

void LocalSearchOptions::check() const {
  require(evaluations >= 1, "evaluations", static_cast<double>(evaluations), ">= 1");
  require(step > 0.0 && step <= 1.0, "step", step, "in (0, 1]");
}

pagmo::population LocalSearch::evolve(pagmo::population population) const {
  require_suitable("local_search", population, /*single=*/true);
  const auto& problem = population.get_problem();
  AskedPoints asked(population);
  UnseenPoints unseen(problem, population.get_x());
  using Known = std::pair<Vector, double>;
  std::map<Vector, double> known;
  for (std::size_t i = 0; i < asked.size(); ++i) known.emplace(asked.point(i), asked.value(i));
  // Asks for the points that are not known, as far as the evaluations go.
  const auto ask = [&](std::vector<Vector> batch) {
    std::erase_if(batch, [&known](const Vector& point) { return known.contains(point); });
    const auto left = static_cast<std::size_t>(options_.evaluations) - asked.size();
    batch.resize(std::min(batch.size(), left));
    if (batch.empty()) return;
    const auto first = asked.size();
    asked.ask(batch);
    for (std::size_t i = first; i < asked.size(); ++i) {
      known.emplace(asked.point(i), asked.value(i));
      unseen.exclude(asked.point(i));
    }
  };
  const auto better = [](const auto& a, const auto& b) { return a.second < b.second; };
  Known current = *std::min_element(known.begin(), known.end(), better);
  while (asked.size() < options_.evaluations) {
    const auto around = neighbours(current.first, problem, options_.step, engine_);
    ask(around);
    auto best = current;
    for (const auto& neighbour : around) {
      const auto found = known.find(neighbour);
      if (found != known.end() && found->second < best.second) best = *found;
    }
    if (best.second < current.second) {
      current = best;
      continue;
    }
    if (asked.size() >= options_.evaluations) break;
    const auto restart = unseen.draw(engine_);
    if (restart.empty()) break;  // everything is known
    ask({restart});
    current = *known.find(restart);
  }
  return asked.best();
}

namespace {

NAS_REGISTER_ALGORITHM(
    {.key = "local_search",
     .summary = "steepest descent over all neighbours, with restarts (White, Nolen & Savani 2021)",
     .settings = {evaluations_setting(),
                  [] {
                    auto setting = number_setting(
                        "step", 0.1, 0, 1,
                        "distance to a neighbour in a real gene, as a share of its range");
                    setting.min_exclusive = true;
                    return setting;
                  }()},
     .file = __FILE__},
    [] {
      return Algorithm{.objectives = Algorithm::Objectives::one,
                       .batches = true,
                       .make = make_seeded<LocalSearch>};
    });

}  // namespace

}  // namespace nas

PAGMO_S11N_ALGORITHM_IMPLEMENT(nas::LocalSearch)
