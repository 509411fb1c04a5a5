#pragma once

#include <string>
#include <vector>

#include <pagmo/algorithm.hpp>
#include <pagmo/population.hpp>

#include "algorithms/user_defined.hpp"
#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// Parameters of Nsga2.
struct Nsga2Options {
  unsigned generations = 20;  ///< >= 1, the initial population included
  double crossover = 0.95;    ///< probability for a pair, [0, 1]
  double eta_c = 10;          ///< distribution index of the crossover of reals, >= 0
  double mutation = 0;        ///< probability for each gene, [0, 1]; 0 = 1 / genes that vary
  double eta_m = 50;          ///< distribution index of the mutation of reals, >= 0
  bool active = true;         ///< genes with an effect alone change; else any, as in pagmo's

  static void each(auto& options, auto&& field) {
    field("generations", options.generations);
    field("crossover", options.crossover);
    field("eta_c", options.eta_c);
    field("mutation", options.mutation);
    field("eta_m", options.eta_m);
    field("active", options.active);
  }
  void check() const;
};

/// NSGA-II for spaces with genes that other genes leave without effect: with the variation of
/// GeneticVariation, or with pagmo's, of which any gene may change. Its crowding distance leaves out
/// an objective in which a front is equal, by which pagmo's is NaN.
///
/// Parents are winners of binary tournaments, of which every individual fights two in a generation:
/// the better non-domination rank wins, then the larger crowding distance, then chance. Of parents
/// and children together the best survive, by rank and then crowding distance.
///
/// N individuals and G generations cost (G - 1) N evaluations beyond those of the population given
/// to evolve(); each generation is one batch where the problem has batch_fitness.
///
/// For deterministic, box-bounded problems with two or more objectives, integers at the tail.
///
/// @see Deb et al. (2002), IEEE Trans. Evol. Comput. 6(2), doi:10.1109/4235.996017.
class Nsga2 : public Seeded<Nsga2Options> {
 public:
  using Seeded::Seeded;

  /// @return the last generation.
  /// @throws std::invalid_argument if the problem is not of the kind above, or the number of
  /// individuals is no multiple of 4.
  pagmo::population evolve(pagmo::population population) const;

  [[nodiscard]] std::string get_name() const {
    return "nsga2: genetic algorithm with crowding distance that varies genes with effect";
  }
};

}  // namespace nas

PAGMO_S11N_ALGORITHM_EXPORT_KEY(nas::Nsga2)
