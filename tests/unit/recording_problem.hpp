#pragma once

#include <pagmo/population.hpp>
#include <pagmo/problem.hpp>
#include <pagmo/utils/hypervolume.hpp>

#include "asked_batches.hpp"
#include "prelude.hpp"
#include "search/algorithm.hpp"

namespace nas {

using Vector = std::vector<double>;

/// A problem of given bounds whose fitness is a function; what is asked is recorded in batches.
struct RecordingProblem {
  Vector lower{0};
  Vector upper{1};
  std::size_t num_integers = 0;
  std::size_t num_objectives = 1;
  std::function<Vector(const Vector&)> value{};
  std::shared_ptr<AskedBatches> batches = std::make_shared<AskedBatches>();

  [[nodiscard]] std::size_t get_nobj() const { return num_objectives; }
  [[nodiscard]] std::pair<Vector, Vector> get_bounds() const { return {lower, upper}; }
  [[nodiscard]] std::size_t get_nix() const { return num_integers; }
  [[nodiscard]] Vector fitness(const Vector& x) const { return value(x); }
  [[nodiscard]] Vector batch_fitness(const Vector& joined) const {
    return answer(*batches, joined, lower.size(), value);
  }
  [[nodiscard]] std::vector<Vector> asked() const {
    std::vector<Vector> all;
    for (const auto& batch : *batches) all.insert(all.end(), batch.begin(), batch.end());
    return all;
  }
};

inline pagmo::population start(const RecordingProblem& problem, std::size_t size,
                               unsigned seed = 1) {
  return pagmo::population(pagmo::problem(problem), size, seed);
}

/// Of the points that dominate the reference.
inline double hypervolume(std::vector<Vector> points, const Vector& reference) {
  std::erase_if(points, [&](const Vector& f) {
    return !std::equal(f.begin(), f.end(), reference.begin(), std::less<>());
  });
  return points.empty() ? 0.0 : pagmo::hypervolume(points).compute(reference);
}

/// What making an algorithm complains about.
template <class Made>
std::string refusal(const typename Made::Options& options) {
  return message_of([&] { Made(options, 1); });
}
/// What evolving a population of a problem complains about.
template <class Made>
std::string refusal(const auto& problem, std::size_t size,
                    const typename Made::Options& options = {}) {
  const pagmo::population population(pagmo::problem(problem), size, 1);
  return message_of([&] { Made(options, 1).evolve(population); });
}

/// An algorithm of the registry, its settings at their defaults but the population.
class RegistryTest : public ::testing::Test {
 protected:
  RegistryTest(const std::string& key, std::int64_t population, const SearchFacts& given)
      : algorithm(algorithms().at(key).make()),
        parameters(algorithms().at(key).description.settings),
        facts(given) {
    parameters.set("population", population);
  }
  /// What does not fit, each with its setting.
  Texts misfits() {
    Texts all;
    for (const auto& one : algorithm.fit(parameters, facts)) {
      all.push_back(one.setting + " " + one.message);
    }
    return all;
  }
  Algorithm algorithm;
  Parameters parameters;
  SearchFacts facts;
};

}  // namespace nas
