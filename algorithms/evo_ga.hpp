#pragma once

#include <string>
#include <vector>

#include <pagmo/algorithm.hpp>
#include <pagmo/population.hpp>

#include "algorithms/user_defined.hpp"
#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// Parameters of EvoGa.
struct EvoGaOptions {
  unsigned generations = 10;  ///< >= 1, the initial population included
  unsigned elite = 3;         ///< survivors; at most the population, at least 1
  unsigned parents = 6;       ///< best individuals that may become parents; 1 .. population
  double crossover = 0.7;     ///< probability, [0, 1]
  double mutation = 0.3;      ///< probability for each gene, [0, 1]
  /// The published improvement proposal: in generation g of G the rate is 0.5 * 0.5^(g / G) instead
  /// of `mutation`.
  bool adaptive_mutation = false;
  /// A mutated integer of two values takes the other one, as the bias does in the published code:
  /// it then changes with probability `mutation`; redrawn, with half of it.
  bool flip_binary = false;

  static void each(auto& options, auto&& field) {
    field("generations", options.generations);
    field("elite", options.elite);
    field("parents", options.parents);
    field("crossover", options.crossover);
    field("mutation", options.mutation);
    field("adaptive_mutation", options.adaptive_mutation);
    field("flip_binary", options.flip_binary);
  }
  void check() const;
};

/// The genetic algorithm of the EvoAttention paper: truncation selection with elites, uniform
/// crossover, redraw mutation.
///
/// Each generation keeps the best `elite` individuals with the fitness that they have, and replaces
/// the others by offspring: two parents drawn uniformly, with replacement, among the best
/// `parents`; with probability `crossover` each gene comes from either parent, else the child is a
/// copy of the first; then each gene is redrawn from its whole range with probability `mutation` (a
/// redraw may give the same value; an integer of two values may be flipped instead, see
/// EvoGaOptions). The offspring of a generation are evaluated as one batch where the problem has
/// batch_fitness.
/// Generation 0 is the population given to evolve(), so N individuals cost (generations - 1)(N -
/// elite) further evaluations: 12 individuals and 10 generations are 93 training runs.
///
/// For single-objective, deterministic, box-bounded problems, with integers at the tail. Ties go to
/// the older individual; NaN ranks last.
///
/// @see Mohabeer (2025), EvoAttention, docs/methodology.md.
class EvoGa : public Seeded<EvoGaOptions> {
 public:
  using Seeded::Seeded;

  /// @throws std::invalid_argument if the problem is not of the kind above, or the population is
  /// smaller than `elite` or `parents`.
  pagmo::population evolve(pagmo::population population) const;

  [[nodiscard]] std::string get_name() const {
    return "evo_ga: the EvoAttention genetic algorithm";
  }
  /// Probability that a gene is redrawn in generation 1, 2, ...
  [[nodiscard]] double mutation_rate(unsigned generation) const;

 private:
  [[nodiscard]] std::vector<double> offspring(const std::vector<std::vector<double>>& parents,
                                              const pagmo::problem& problem, double rate) const;
};

}  // namespace nas

PAGMO_S11N_ALGORITHM_EXPORT_KEY(nas::EvoGa)
