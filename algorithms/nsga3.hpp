#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <pagmo/algorithm.hpp>
#include <pagmo/population.hpp>

#include "algorithms/user_defined.hpp"
#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// @return C(divisions + num_objectives - 1, num_objectives - 1): how many points
/// das_dennis_points() has. A double, since it may exceed every integer.
double num_das_dennis_points(std::size_t num_objectives, std::size_t divisions);

/// @return the largest number of divisions that gives at most `population` points, 0 if one
/// division gives more already. `num_objectives` >= 2.
std::size_t fitted_divisions(std::size_t num_objectives, std::size_t population);

/// All points of the unit simplex whose coordinates are multiples of 1 / `divisions`, in
/// lexicographic order; each sums to 1. `num_objectives` >= 2, `divisions` >= 1.
///
/// @see Das & Dennis (1998), SIAM J. Optim. 8(3), doi:10.1137/S1052623496307510.
std::vector<std::vector<double>> das_dennis_points(std::size_t num_objectives,
                                                   std::size_t divisions);

/// @return where the hyperplane through the extreme points of `points` (>= 0, with the ideal point
/// at the origin) cuts each axis, at most the largest coordinate there; `fallback` (> 0) where
/// there is no such hyperplane or it cuts an axis at or below 0. See Nsga3.
std::vector<double> axis_intercepts(std::vector<std::vector<double>> points,
                                    const std::vector<double>& fallback);

/// Parameters of Nsga3.
struct Nsga3Options {
  unsigned generations = 50;  ///< >= 1, the initial population included
  double crossover = 0.9;     ///< probability for a pair, [0, 1]
  double eta_c = 30;          ///< distribution index of the crossover of reals, >= 0
  double mutation = 0;        ///< probability for each gene, [0, 1]; 0 = 1 / genes that vary
  double eta_m = 20;          ///< distribution index of the mutation of reals, >= 0
  /// Of the simplex of reference points; 0 = the most that give no more points than individuals.
  unsigned divisions = 0;

  static void each(auto& options, auto&& field) {
    field("generations", options.generations);
    field("crossover", options.crossover);
    field("eta_c", options.eta_c);
    field("mutation", options.mutation);
    field("eta_m", options.eta_m);
    field("divisions", options.divisions);
  }
  void check() const;
};

/// NSGA-III: non-dominated sorting, and in the front that fits only in part a choice that serves
/// evenly spread reference directions.
///
/// Each generation pairs the population at random and makes as many children as there are
/// individuals. Of parents and children together whole fronts survive; those of the last front are
/// chosen one by one: the direction with the fewest survivors (ties at random) takes its nearest
/// candidate if it has none yet, else a random one of its candidates. Distances to the directions
/// are perpendicular, after f_i -> (f_i - z_i) / a_i: z is the best value of each objective over
/// the run, a_i where the hyperplane through the m extreme points cuts axis i. The extreme point of
/// axis j minimises max_i (f_i - z_i) / (w_i r_i) with w_j = 1 and 1e-6 else; r_i, the largest
/// f_i - z_i of the first front, makes the units cancel. Where there is no such hyperplane, a_i is
/// r_i: a penalty in the last front would make all others alike.
///
/// Children are those of GeneticVariation.
///
/// N individuals and G generations cost (G - 1) N evaluations beyond those of the population given
/// to evolve(); each generation is one batch where the problem has batch_fitness.
///
/// For deterministic, box-bounded problems with two or more objectives, integers at the tail.
/// Individuals with an objective that is not finite rank last, just before them those that equal
/// another.
///
/// @see Deb & Jain (2014), IEEE Trans. Evol. Comput. 18(4), doi:10.1109/TEVC.2013.2281535.
class Nsga3 : public Seeded<Nsga3Options> {
 public:
  using Seeded::Seeded;

  /// @return the last generation, in the order in which it was selected.
  /// @throws std::invalid_argument if the problem is not of the kind above, or the population has
  /// fewer than 4 individuals or fewer than there are reference points.
  pagmo::population evolve(pagmo::population population) const;

  [[nodiscard]] std::string get_name() const {
    return "nsga3: many-objective genetic algorithm with reference points";
  }
};

}  // namespace nas

PAGMO_S11N_ALGORITHM_EXPORT_KEY(nas::Nsga3)
