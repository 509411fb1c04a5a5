// What searches make of an objective that is the same for all candidates, as the share of diverged
// training runs mostly is: the same as without it.

#include <iostream>

#include <pagmo/population.hpp>
#include <pagmo/problem.hpp>
#include <pagmo/problems/zdt.hpp>
#include <pagmo/utils/hypervolume.hpp>

#include "prelude.hpp"
#include "search/algorithm.hpp"

namespace nas {
namespace {

using Vector = std::vector<double>;

/// ZDT1, with constants as further objectives, of a search that keeps all points that it asked for.
struct Zdt1 {
  Vector constants{};
  std::shared_ptr<std::vector<Vector>> points = std::make_shared<std::vector<Vector>>();

  [[nodiscard]] std::size_t get_nobj() const { return 2 + constants.size(); }
  [[nodiscard]] std::pair<Vector, Vector> get_bounds() const {
    return {Vector(10, 0.0), Vector(10, 1.0)};
  }
  [[nodiscard]] Vector fitness(const Vector& x) const {
    auto values = pagmo::zdt(1, 10).fitness(x);
    points->push_back(values);
    values.insert(values.end(), constants.begin(), constants.end());
    return values;
  }
  [[nodiscard]] Vector batch_fitness(const Vector& joined) const {
    Vector values;
    for (auto x = joined.begin(); x != joined.end(); x += 10) {
      const auto each = fitness(Vector(x, x + 10));
      values.insert(values.end(), each.begin(), each.end());
    }
    return values;
  }
  /// Of all that was asked for; 0.877 is that of the front.
  [[nodiscard]] double quality() const {
    std::vector<Vector> inside;
    for (const auto& point : *points) {
      if (point[0] < 1.1 && point[1] < 1.1) inside.push_back(point);
    }
    return inside.empty() ? 0.0 : pagmo::hypervolume(inside).compute({1.1, 1.1});
  }
};

/// An algorithm of the registry with its default settings, or another choice of one.
pagmo::algorithm made(const std::string& key, std::size_t objectives, unsigned seed,
                      const std::string& setting, const std::string& choice) {
  const auto& entry = algorithms().at(key);
  const auto algorithm = entry.make();
  Parameters settings(entry.description.settings);
  settings.set("population", std::int64_t{40});
  settings.set("generations", std::int64_t{60});
  if (!setting.empty()) settings.set(setting, choice);
  const SearchFacts facts{.num_genes = 10, .dimension = 10, .num_objectives = objectives};
  if (algorithm.fit) algorithm.fit(settings, facts);
  return algorithm.make(settings, facts, seed);
}

double mean_quality(const std::string& key, const Vector& constants, const std::string& setting,
                    const std::string& choice) {
  double sum = 0.0;
  constexpr unsigned kSeeds = 5;
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    const Zdt1 problem{constants};
    (void)made(key, problem.get_nobj(), seed, setting, choice)
        .evolve(pagmo::population(pagmo::problem(problem), 40, seed));
    sum += problem.quality();
  }
  return sum / kSeeds;
}

TEST(ConstantObjective, TakesNothingFromAnyAlgorithmOfSeveralObjectives) {
  for (const auto& key : algorithms().keys()) {
    const auto& entry = algorithms().at(key);
    if (entry.make().objectives == Algorithm::Objectives::one) continue;
    const Parameters settings(entry.description.settings);
    if (!settings.contains("generations")) continue;  // as the model-based one, which is slow
    std::vector<std::pair<std::string, std::string>> variants{{"", ""}};
    for (const auto& setting : entry.description.settings) {
      if (setting.name == "weight_generation" || setting.name == "order") continue;
      for (std::size_t i = 1; i < setting.choices.size(); ++i) {
        variants.emplace_back(setting.name, setting.choices[i]);
      }
    }
    for (const auto& [setting, choice] : variants) {
      const double without = mean_quality(key, {}, setting, choice);
      for (const auto& constants : {Vector{7.0}}) {
        const double with = mean_quality(key, constants, setting, choice);
        std::cout << key << ' ' << choice << ": " << without << ", with a constant " << with
                  << '\n';
        EXPECT_GT(with, 0.95 * without) << key << ' ' << setting << ' ' << choice;
      }
    }
  }
}

}  // namespace
}  // namespace nas
