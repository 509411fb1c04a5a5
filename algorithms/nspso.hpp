#pragma once

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <pagmo/algorithm.hpp>
#include <pagmo/population.hpp>

#include "algorithms/user_defined.hpp"
#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// Parameters of Nspso.
struct NspsoOptions {
  unsigned generations = 20;      ///< >= 1, the initial population included
  double inertia = 0.6;           ///< weight omega of the velocity before, [0, 1]
  double own_pull = 2.0;          ///< weight c1 of the pull towards a particle's own best, > 0
  double leader_pull = 2.0;       ///< weight c2 of the pull towards a leader, > 0
  double largest_velocity = 0.5;  ///< as a share of each variable's range, (0, 1]
  unsigned leaders = 60;          ///< percentage of the best from which leaders are drawn, 1 .. 100
  /// What keeps the front diverse: "crowding distance", "niche count" or "max min".
  std::string diversity = "crowding distance";

  static void each(auto& options, auto&& field) {
    field("generations", options.generations);
    field("inertia", options.inertia);
    field("own_pull", options.own_pull);
    field("leader_pull", options.leader_pull);
    field("largest_velocity", options.largest_velocity);
    field("leaders", options.leaders);
    field("diversity", options.diversity);
  }
  void check() const;
};

/// Generation, evaluations so far, best value of each objective in the population.
using NspsoLogLine = std::tuple<unsigned, unsigned long long, std::vector<double>>;

/// Non-dominated sorting particle swarm.
///
/// Each particle is pulled towards a best position of its own and towards a leader, which is drawn
/// from the best that are non-dominated and lie where few others do. Of the moved particles and the
/// bests before, the best by non-domination remain as bests. An objective in which all that are
/// compared are equal decides about nothing: the search is the same without it.
///
/// N particles and G generations cost (G - 1) N evaluations beyond those of the population given to
/// evolve(); each generation is one batch where the problem has batch_fitness.
///
/// For deterministic, box-bounded problems with two or more objectives.
///
/// @see Li (2003), GECCO, doi:10.1007/3-540-45105-6_4; Fonseca & Fleming (1993) on niche counts;
/// Balling (2003), EMO, doi:10.1007/3-540-36970-8_1, on max min.
class Nspso : public Logged<NspsoOptions, NspsoLogLine> {
 public:
  using Logged::Logged;

  /// @return the particles where they are last.
  /// @throws std::invalid_argument if the problem is not of the kind above, or the population has
  /// fewer than two particles.
  pagmo::population evolve(pagmo::population population) const;

  [[nodiscard]] std::string get_name() const { return "nspso: particle swarm by non-domination"; }

 private:
  using Vector = std::vector<double>;
  [[nodiscard]] double largest_step(std::size_t variable,
                                    const std::pair<Vector, Vector>& bounds) const;
  void move(Vector& particle, Vector& velocity, const Vector& own, const Vector& leader,
            const std::pair<Vector, Vector>& bounds) const;
  [[nodiscard]] std::vector<std::size_t> leaders(const std::vector<Vector>& points,
                                                 const std::vector<Vector>& fitness) const;
  [[nodiscard]] std::vector<std::size_t> best(const std::vector<Vector>& fitness,
                                              std::size_t count) const;
};

}  // namespace nas

PAGMO_S11N_ALGORITHM_EXPORT_KEY(nas::Nspso)
