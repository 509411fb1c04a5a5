#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <pagmo/algorithm.hpp>

#include "core/parameters.hpp"
#include "core/registry.hpp"
#include "core/visibility.hpp"
#include "genotype/encoding.hpp"

namespace NAS_PUBLIC nas {

/// What is known about a search when its algorithm is made.
struct SearchFacts {
  std::size_t num_genes = 0;       ///< genes that vary
  std::size_t dimension = 0;       ///< entries of a decision vector under the algorithm's encoding
  std::size_t num_objectives = 1;  ///< that the algorithm sees: 1 where they are decomposed
  double num_combinations = 0.0;   ///< of the categorical genes
};

/// A setting that does not fit: which, and what is allowed ("must be at most ...").
struct Misfit {
  std::string setting;
  std::string message;
};

/// A search algorithm and what it can do: one row of the capability table, from which come the
/// encoding, the fitted defaults, every refusal of a configuration and `nas-run describe`.
///
/// Every algorithm minimises, sees a deterministic problem within finite bounds, is handed an
/// evaluated initial population, and is resumed by being asked again from its seed.
struct Algorithm {
  enum class Objectives { one, several, any };

  Objectives objectives = Objectives::one;
  Encoding encoding = Encoding::integers;
  /// Asks for a whole generation at once, so that several workers have work; else one candidate after the other.
  bool batches = false;
  /// Each variable is a layer, 0 the layer as it is: there are no real ones.
  bool layers = false;
  std::int64_t default_population = 12;
  /// Replaces default_population where what suits depends on the search. May be empty.
  std::function<std::int64_t(const SearchFacts&)> fitted_population{};
  std::int64_t min_population = 1;
  std::int64_t population_multiple = 1;  ///< the population must be a multiple of it

  /// Gives settings that the user left to be fitted (their defaults say so) a value that suits the
  /// search. May be empty. `population` is among the settings and is fitted already.
  /// @return what does not fit.
  std::function<std::vector<Misfit>(Parameters&, const SearchFacts&)> fit{};
  /// @param settings  the plug-in's own, and `population`; fitted.
  /// @return a pagmo algorithm of which one evolve() call is one whole search. All randomness comes from `seed`.
  std::function<pagmo::algorithm(const Parameters& settings, const SearchFacts&,
                                 std::uint32_t seed)>
      make;
};

using AlgorithmRegistry = Registry<Algorithm()>;
AlgorithmRegistry& algorithms();

/// The setting `generations` of an algorithm that works in generations, the initial population being the first.
Setting generations_setting(std::int64_t default_value, double min = 1);
/// The setting `evaluations` of an algorithm that counts candidates.
Setting evaluations_setting();
/// @return what a pagmo algorithm counts: generations after the initial population.
unsigned further_generations(const Parameters& settings);

/// Declarations of a plug-in's settings, for short.
Setting integer_setting(std::string name, std::int64_t value, double min, double max,
                        std::string help);
Setting number_setting(std::string name, double value, double min, double max, std::string help);
Setting choice_setting(std::string name, std::vector<std::string> choices, std::string help);

/// Fits that several algorithms share, for Algorithm::fit. A mutation rate of 0 becomes 1 / genes,
/// so that a child differs in one gene on average.
void fit_mutation(Parameters& settings, const SearchFacts& facts);

/// Registers an algorithm from its own .cpp in algorithms/: `NAS_REGISTER_ALGORITHM(description, function);`
#define NAS_REGISTER_ALGORITHM(...) \
  [[maybe_unused]] static const bool nas_registered_algorithm = ::nas::algorithms().add(__VA_ARGS__)

}  // namespace nas
