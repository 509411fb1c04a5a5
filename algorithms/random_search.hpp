#pragma once

#include <string>

#include <pagmo/algorithm.hpp>
#include <pagmo/population.hpp>

#include "algorithms/user_defined.hpp"
#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// Parameters of RandomSearch.
struct RandomSearchOptions {
  unsigned long long evaluations = 100;  ///< asks, the initial population included; >= 1
  unsigned in_flight = 1;                ///< candidates that are out at once; 1 = batches; >= 1
  bool arrival = false;                  ///< whether answers are told as they arrive

  static void each(auto& options, auto&& field) {
    field("evaluations", options.evaluations);
    field("in_flight", options.in_flight);
    field("arrival", options.arrival);
  }
  void check() const;
};

/// Uniform random search.
///
/// Where all variables are integers no point is asked for twice, those of the initial population
/// included, and the search ends with the space; real variables are drawn afresh each time. Asks in
/// batches as large as the population, or with in_flight > 1 without waiting for any. Any number of
/// objectives; deterministic, box-bounded problems, integers at the tail.
///
/// @see Bergstra & Bengio (2012), JMLR 13:281-305; Li & Talwalkar (2019), arXiv:1902.07638, on how
/// much of architecture search it explains.
class RandomSearch : public Seeded<RandomSearchOptions> {
 public:
  using Seeded::Seeded;

  /// @throws std::invalid_argument if the problem is not of the kind above, or the population is
  /// empty.
  pagmo::population evolve(pagmo::population population) const;

  [[nodiscard]] std::string get_name() const { return "random_search: uniform random search"; }
};

}  // namespace nas

PAGMO_S11N_ALGORITHM_EXPORT_KEY(nas::RandomSearch)
