#pragma once

#include <string>

#include <pagmo/algorithm.hpp>
#include <pagmo/population.hpp>

#include "algorithms/user_defined.hpp"
#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// Parameters of RegularizedEvolution.
struct RegularizedEvolutionOptions {
  unsigned long long evaluations = 100;  ///< asks, the initial population included; >= 1
  unsigned sample = 3;     ///< individuals that compete to be the parent; 1 .. population
  unsigned batch = 1;      ///< children asked for together; >= 1
  unsigned in_flight = 1;  ///< children that are out at once; >= 1, and 1 with batch > 1
  bool arrival = false;    ///< whether the queue is in the order in which answers arrive

  static void each(auto& options, auto&& field) {
    field("evaluations", options.evaluations);
    field("sample", options.sample);
    field("batch", options.batch);
    field("in_flight", options.in_flight);
    field("arrival", options.arrival);
  }
  void check() const;
};

/// Ageing evolution: a queue in which the oldest dies, so that a lucky value does not live for
/// ever.
///
/// The best of `sample` individuals drawn with replacement is the parent; its child differs in one
/// variable, drawn uniformly, as is its new value among the others. The child joins the queue and
/// the oldest leaves it. With batch > 1 that many children come from one state of the queue and are
/// asked for together: the synchronous form, for several workers. With in_flight > 1 that many are
/// out at once, and each joins the queue when it is told: the asynchronous form of the paper. In a
/// search by rungs the parent is drawn from the best third of the highest rung beyond the first that
/// `sample` candidates have come to, as soon as there is one; those do not age, so that a child that
/// was asked for before is changed further, up to 20 times in all. One objective; deterministic,
/// box-bounded problems, integers at the tail. The population that is returned holds the best
/// points ever asked for.
///
/// @see Real, Aggarwal, Huang & Le (2019), Regularized Evolution for Image Classifier Architecture
/// Search, arXiv:1802.01548, algorithm 1.
class RegularizedEvolution : public Seeded<RegularizedEvolutionOptions> {
 public:
  using Seeded::Seeded;

  /// @throws std::invalid_argument if the problem is not of the kind above, or the population is
  /// empty.
  pagmo::population evolve(pagmo::population population) const;

  [[nodiscard]] std::string get_name() const { return "regularized_evolution: ageing evolution"; }
};

}  // namespace nas

PAGMO_S11N_ALGORITHM_EXPORT_KEY(nas::RegularizedEvolution)
