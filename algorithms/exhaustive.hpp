#pragma once

#include <string>

#include <pagmo/algorithm.hpp>
#include <pagmo/population.hpp>

#include "algorithms/user_defined.hpp"
#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// Parameters of Exhaustive.
struct ExhaustiveOptions {
  unsigned levels = 1;  ///< values of a real variable; >= 1

  static void each(auto& options, auto&& field) { field("levels", options.levels); }
  void check() const;
};

/// Every combination of the integers, with a grid for the real variables.
///
/// A real variable takes `levels` equally spaced values, its bounds included (one level: the
/// middle). Lexicographic, the last variable fastest; points of the initial population are not
/// asked for again; batches as large as the population. Any number of objectives; deterministic,
/// box-bounded problems, integers at the tail, at most 10^7 points.
class Exhaustive : public Configured<ExhaustiveOptions> {
 public:
  using Configured::Configured;

  /// @throws std::invalid_argument if the problem is not of the kind above, or the population is
  /// empty.
  pagmo::population evolve(pagmo::population population) const;

  [[nodiscard]] std::string get_name() const { return "exhaustive: every combination"; }
};

}  // namespace nas

PAGMO_S11N_ALGORITHM_EXPORT_KEY(nas::Exhaustive)
