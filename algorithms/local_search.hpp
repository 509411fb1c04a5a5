#pragma once

#include <string>

#include <pagmo/algorithm.hpp>
#include <pagmo/population.hpp>

#include "algorithms/user_defined.hpp"
#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// Parameters of LocalSearch.
struct LocalSearchOptions {
  unsigned long long evaluations = 100;  ///< asks, the initial population included; >= 1
  double step = 0.1;                     ///< of a real variable, as a share of its range; (0, 1]

  static void each(auto& options, auto&& field) {
    field("evaluations", options.evaluations);
    field("step", options.step);
  }
  void check() const;
};

/// Steepest descent with restarts.
///
/// All neighbours of the current point are asked for as one batch, in random order; the best of
/// them is next if it is better, else a random point that is not known. Neighbours differ in one
/// variable: an integer in any other value, a real by `step` of its range in either direction. What
/// is known is not asked for again; where all variables are integers the search ends with the
/// space. One objective; deterministic, box-bounded problems, integers at the tail.
///
/// @see White, Nolen & Savani (2021), Exploring the Loss Landscape in NAS, arXiv:2005.02960.
class LocalSearch : public Seeded<LocalSearchOptions> {
 public:
  using Seeded::Seeded;

  /// @throws std::invalid_argument if the problem is not of the kind above, or the population is
  /// empty.
  pagmo::population evolve(pagmo::population population) const;

  [[nodiscard]] std::string get_name() const {
    return "local_search: steepest descent with restarts";
  }
};

}  // namespace nas

PAGMO_S11N_ALGORITHM_EXPORT_KEY(nas::LocalSearch)
