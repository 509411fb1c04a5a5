#pragma once

#include <cstddef>
#include <random>
#include <set>
#include <vector>

#include <pagmo/problem.hpp>

#include "search/variation.hpp"

namespace nas {

/// Parameters of GeneticVariation.
struct VariationOptions {
  double crossover;  ///< probability that a pair is crossed, [0, 1]
  double eta_c;      ///< distribution index of the crossover of reals, >= 0
  double mutation;   ///< probability for each variable, [0, 1]; 0 = 1 / variables that vary
  double eta_m;      ///< distribution index of the mutation of reals, >= 0

  /// Those of an algorithm's options that have these names.
  static VariationOptions of(const auto& options) {
    return {options.crossover, options.eta_c, options.mutation, options.eta_m};
  }
  /// @throws std::invalid_argument, see Requirement.
  void check(const Requirement& require) const;
};

/// Crossover and mutation of a genetic algorithm, such that children are new candidates.
///
/// With probability `crossover` a pair is crossed: each variable takes part with probability 1/2,
/// a real one by simulated binary crossover within its bounds, an integer by exchange. Then each
/// variable of a child that has an effect in it (active_variables) is mutated with probability
/// `mutation`: a real one by polynomial mutation within its bounds; an integer, which is taken for a
/// category, becomes one of its other values, all alike. A child that equals one that was asked
/// before, but for variables without effect, has random variables with effect changed further, one
/// after the other, until it is new: at most 20. New as a point: two values of a variable with
/// effect may be one candidate (as many kv_heads as heads are 0), which then comes again.
///
/// @see Deb & Agrawal (1995), Complex Systems 9(2), on simulated binary crossover; Deb & Deb (2014),
/// Int. J. Artif. Intell. Soft Comput. 4(1), doi:10.1504/IJAISC.2014.059280, on polynomial mutation.
class GeneticVariation {
 public:
  /// @param problem  outlives it, as does `engine`, from which all randomness comes.
  /// @param asked    points that were asked before.
  GeneticVariation(const pagmo::problem& problem, const VariationOptions& options,
                   std::mt19937& engine, const std::vector<std::vector<double>>& asked);

  /// The first `count` children of parents 0 and 1, 2 and 3, ..., two of each pair.
  ///
  /// @param parents  an even number, at least `count`.   @return points that count as asked now.
  std::vector<std::vector<double>> offspring(const std::vector<std::vector<double>>& parents,
                                             std::size_t count);

  /// One child of two parents; where changing it finds nothing new, a random point: 20 tries, too.
  /// @return a point that counts as asked now.
  std::vector<double> child(std::vector<double> parent, std::vector<double> other);

 private:
  using Vector = std::vector<double>;

  void cross(Vector& a, Vector& b) const;
  void cross_reals(std::size_t variable, double& a, double& b) const;
  [[nodiscard]] double spread_factor(double random, double room, double distance) const;
  void mutate(Vector& x) const;
  [[nodiscard]] bool is_known(const Vector& x) const;
  void renew(Vector& x) const;
  void change_one(Vector& x) const;
  void change(Vector& x, std::size_t variable) const;
  [[nodiscard]] std::vector<std::size_t> effective(const Vector& x) const;

  const pagmo::problem& problem_;
  VariationOptions options_;
  std::mt19937& engine_;
  std::size_t num_reals_;
  Vector lower_, upper_;
  std::vector<std::size_t> free_;  ///< variables with more than one value
  double rate_;                    ///< of mutation
  std::set<Vector> known_;         ///< what was asked, as effective points
};

/// Points, at least one, by the objectives in which they are not all equal.
std::vector<std::vector<double>> differing_objectives(
    const std::vector<std::vector<double>>& points);

/// Which of some individuals is better: by non-domination rank, then crowding distance.
class CrowdedRanking {
 public:
  /// @param fitness  of the individuals, two or more of them.
  explicit CrowdedRanking(const std::vector<std::vector<double>>& fitness);

  /// The winner of a binary tournament; where both are alike, chance decides.
  [[nodiscard]] std::size_t winner(std::size_t a, std::size_t b, std::mt19937& engine) const;
  /// The `count` best, front by front; of the last one that takes part the least crowded.
  [[nodiscard]] std::vector<std::size_t> best(std::size_t count) const;
  /// All of them, front by front, the least crowded of each first.
  [[nodiscard]] std::vector<std::size_t> sorted() const;
  [[nodiscard]] const std::vector<pagmo::pop_size_t>& first_front() const {
    return fronts_.front();
  }
  /// The most crowded of the last front, where equal points are most crowded; the last of several.
  [[nodiscard]] std::size_t worst() const;

 private:
  std::vector<std::vector<pagmo::pop_size_t>> fronts_;
  std::vector<pagmo::pop_size_t> ranks_;
  std::vector<double> crowding_;
};

}  // namespace nas
