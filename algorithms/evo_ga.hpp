#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <pagmo/algorithm.hpp>
#include <pagmo/population.hpp>

namespace nas {

/// The genetic algorithm of the EvoAttention paper: truncation selection with elites, uniform
/// crossover, redraw mutation.
///
/// Each generation keeps the best `elite` individuals with the fitness that they have, and replaces
/// the others by offspring: two parents drawn uniformly, with replacement, among the best
/// `parents`; with probability `crossover` each gene comes from either parent, else the child is a
/// copy of the first; then each gene is redrawn from its whole range with probability `mutation` (a
/// redraw may give the same value; an integer of two values may be flipped instead, see Options).
/// The offspring of a generation are evaluated as one batch where the problem has batch_fitness.
/// Generation 0 is the population given to evolve(), so N individuals cost (generations - 1)(N -
/// elite) further evaluations: 12 individuals and 10 generations are 93 training runs.
///
/// For single-objective, deterministic, box-bounded problems, with integers at the tail. Ties go to
/// the older individual; NaN ranks last.
///
/// @see Mohabeer (2025), EvoAttention, docs/methodology.md.
class EvoGa {
 public:
  struct Options {
    unsigned generations = 10;  ///< >= 1, the initial population included
    unsigned elite = 3;         ///< survivors; at most the population, at least 1
    unsigned parents = 6;       ///< best individuals that may become parents; 1 .. population
    double crossover = 0.7;     ///< probability, [0, 1]
    double mutation = 0.3;      ///< probability for each gene, [0, 1]
    /// The published improvement proposal: in generation g of G the rate is 0.5 * 0.5^(g / G)
    /// instead of `mutation`.
    bool adaptive_mutation = false;
    /// A mutated integer of two values takes the other one, as the bias does in the published code:
    /// it then changes with probability `mutation`; redrawn, with half of it.
    bool flip_binary = false;

    template <class Archive>
    void serialize(Archive& archive, unsigned /*version*/) {
      archive& generations& elite& parents& crossover& mutation& adaptive_mutation& flip_binary;
    }
  };
  /// Generation, evaluations so far, best fitness, mean fitness of the population.
  using LogLine = std::tuple<unsigned, unsigned long long, double, double>;

  EvoGa() : EvoGa(Options{}, 42) {}
  /// @throws std::invalid_argument naming the option, its value and what is allowed.
  EvoGa(const Options& options, std::uint32_t seed);

  /// @throws std::invalid_argument if the problem is not of the kind above, or the population is
  /// smaller than `elite` or
  ///         `parents`.
  pagmo::population evolve(pagmo::population population) const;

  void set_seed(unsigned seed);
  void set_verbosity(unsigned verbosity) { verbosity_ = verbosity; }
  [[nodiscard]] std::string get_name() const {
    return "evo_ga: the EvoAttention genetic algorithm";
  }
  [[nodiscard]] std::string get_extra_info() const;
  [[nodiscard]] const std::vector<LogLine>& log() const { return log_; }
  /// Probability that a gene is redrawn in generation 1, 2, ...
  [[nodiscard]] double mutation_rate(unsigned generation) const;

  template <class Archive>
  void serialize(Archive& archive, unsigned /*version*/) {
    archive& options_& seed_& engine_& verbosity_& log_;
  }

 private:
  [[nodiscard]] std::vector<double> offspring(const std::vector<std::vector<double>>& parents,
                                              const pagmo::problem& problem, double rate) const;

  Options options_;
  std::uint32_t seed_;
  mutable std::mt19937 engine_;
  unsigned verbosity_ = 0;
  mutable std::vector<LogLine> log_;
};

}  // namespace nas

PAGMO_S11N_ALGORITHM_EXPORT_KEY(nas::EvoGa)
