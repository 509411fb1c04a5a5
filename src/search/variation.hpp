#pragma once

#include <random>
#include <set>
#include <string>
#include <vector>

#include <pagmo/population.hpp>
#include <pagmo/problem.hpp>

#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

// What search algorithms of our own have in common. Decision vectors have their integers last.
// Random numbers come from the engine alone: std's distributions differ between libraries.

/// @return uniform in [0, 1), 32 bits.
double uniform(std::mt19937& engine);
/// @return uniform in 0 .. n-1; n >= 1.
std::size_t below(std::mt19937& engine, std::size_t n);
/// @return 0 .. n-1 in random order, all orders alike.
std::vector<std::size_t> shuffled(std::size_t n, std::mt19937& engine);

/// How often our own algorithms vary a point again that was asked for before, until they ask for it all the same.
inline constexpr int kTriesForNewPoint = 20;

/// A point drawn uniformly within a problem's bounds.
std::vector<double> random_point(const pagmo::problem& problem, std::mt19937& engine);
/// Draws one variable of a point anew, an integer among its other values. A variable of which there
/// is one value only stays as it is.
void redraw(std::vector<double>& point, std::size_t variable, const pagmo::problem& problem,
            std::mt19937& engine);

/// @return whether every objective has a finite value.
bool is_finite(const std::vector<double>& fitness);

/// Whether each variable of a point has an effect, where the problem is a search that knows
/// conditions (SearchSettings); else all have.
std::vector<bool> active_variables(const std::vector<double>& point, const pagmo::problem& problem);
/// Variables of a point that variation may change: those that have an effect, or all where none has.
std::vector<std::size_t> changeable(const std::vector<double>& point,
                                    const pagmo::problem& problem);
/// The point as it is evaluated (SearchProblem::evaluated), with every variable without effect at its lower bound: equal for
/// points that differ in such variables, or in decimals that the gene does not have, alone.
std::vector<double> effective_point(const std::vector<double>& point,
                                    const pagmo::problem& problem);

/// Number of points of a problem whose variables are all integers; infinite if one is real.
double num_points(const pagmo::problem& problem);

/// Draws points that were neither given nor drawn before, where all variables are integers; with a real variable any point.
class UnseenPoints {
 public:
  UnseenPoints(const pagmo::problem& problem, const std::vector<std::vector<double>>& seen);
  /// Never to be drawn.
  void exclude(const std::vector<double>& point) { seen_.insert(point); }
  /// @return a point, uniform among the unseen ones; empty if there is none.
  std::vector<double> draw(std::mt19937& engine);

 private:
  const pagmo::problem& problem_;
  double total_;
  std::set<std::vector<double>> seen_;
};

/// Fitness vectors of several points: as one batch where the problem can, else one by one.
std::vector<std::vector<double>> evaluate(const pagmo::problem& problem,
                                          const std::vector<std::vector<double>>& batch);

/// Refuses an algorithm's options by name.
struct Requirement {
  const char* algorithm;
  /// @throws std::invalid_argument "ALGORITHM: NAME = VALUE, must be ALLOWED" unless it holds.
  void operator()(bool holds, const std::string& name, double value,
                  const std::string& allowed) const;
};

/// @throws std::invalid_argument naming the algorithm unless the problem is deterministic and
/// box-bounded, has one objective where `single` is set, and the population has the least size.
void require_suitable(const std::string& algorithm, const pagmo::population& population,
                      bool single, std::size_t least = 1);

/// Everything that a search has asked for, the initial population first.
class AskedPoints {
 public:
  explicit AskedPoints(const pagmo::population& population)
      : population_(population), points_(population.get_x()), fitness_(population.get_f()) {}

  /// Asks for further points, together.
  void ask(const std::vector<std::vector<double>>& batch);
  /// Takes in a point that was asked for otherwise.
  void add(const std::vector<double>& point, const std::vector<double>& fitness);

  [[nodiscard]] std::size_t size() const { return points_.size(); }
  [[nodiscard]] const std::vector<double>& point(std::size_t i) const { return points_[i]; }
  [[nodiscard]] const std::vector<double>& fitness(std::size_t i) const { return fitness_[i]; }
  /// Of a single objective; NaN is infinite.
  [[nodiscard]] double value(std::size_t i) const;
  /// The population with the best of the points: by fitness, several objectives by non-domination
  /// rank; distinct ones first, then in the order of asking. NaN is worst.
  [[nodiscard]] pagmo::population best() const;

 private:
  pagmo::population population_;
  std::vector<std::vector<double>> points_;
  std::vector<std::vector<double>> fitness_;
};

}  // namespace nas
