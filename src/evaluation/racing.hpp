#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/visibility.hpp"
#include "indicators/indicators.hpp"

namespace NAS_PUBLIC nas {

/// Racing: how many replicates a candidate deserves is decided by what its first ones say. A
/// batch's candidates race against each other and against the best of all earlier batches. Each
/// round gives one more replicate to those that may be among the best, so that training runs go
/// where they decide something and no lucky first score stands. When a race is decided, the best
/// have the most replicates: in later races they are compared with, and stay what they are.
///
/// The method is the race by paired t-tests of irace ("t-test", without correction), a replicate,
/// whose seeds are the same for all candidates, taking the place of an instance. Three things
/// differ: the tests ask for the best k in place of the best one; nothing is dropped for good,
/// since each round looks at all that is known by then; and the tests begin with two pairs in place
/// of five, replicates being few.
///
/// Each test is two-sided at 1 - confidence: with probability (1 - confidence) / 2 it stops a
/// candidate that is as good as the one it is compared with. Nothing corrects for the number of
/// rounds and candidates: over r rounds it may be r - 1 times that, and more where the other one
/// leads by luck. As further replicates remove that luck, a candidate stopped too early re-enters
/// the race.
///
/// Means of unequally many replicates also differ by what the seeds do to all candidates. Hence a
/// candidate among the best by mean is never stopped: in the end the best are compared on the same
/// seeds.
///
/// @see Birattari, Stuetzle, Paquete & Varrentrapp (2002), A racing algorithm for configuring
/// metaheuristics, GECCO; Lopez-Ibanez, Dubois-Lacoste, Perez Caceres, Birattari & Stuetzle (2016),
/// The irace package, doi:10.1016/j.orp.2016.09.002, section 2.
struct Racing {
  std::int64_t replicates = 5;  ///< most of one candidate, failed ones included
  std::int64_t elites = 3;      ///< k, where there is one objective
  double confidence = 0.95;     ///< of each test, in (0, 1)
};

/// A candidate as a race knows it.
struct Racer {
  std::string candidate{};
  /// Objectives in minimisation form, by replicate; an empty point where that failed.
  Points replicates{};
  Point mean{};  ///< over all replicates; empty if none is usable, which ends its race
};

/// The best by mean: with one objective k of them, in order; with several the non-dominated ones.
/// @return positions in `racers`.
std::vector<std::size_t> elites(const std::vector<Racer>& racers, const Racing& racing);

/// The entrants that get a further replicate: those that have fewer than the most and are not out.
/// An elite never is. With one objective, a candidate is out if it is significantly worse than the
/// k-th best by mean; with several, if an elite significantly dominates it: in each objective
/// significantly worse or certainly equal, not everywhere equal. An objective that does not depend
/// on the replicate has differences without spread, which are certain; since every one of the tests
/// must reject, their number needs no correction (Berger 1982).
///
/// @param entrants  positions in `racers`; repeated ones count once.
/// @return positions, the elites first; empty when the race is decided.
std::vector<std::size_t> undecided(const std::vector<Racer>& racers,
                                   const std::vector<std::size_t>& entrants, const Racing& racing);

}  // namespace nas
