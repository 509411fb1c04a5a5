#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/visibility.hpp"
#include "indicators/indicators.hpp"

namespace NAS_PUBLIC nas {

/// A candidate whose training run has come to a rung: to this validation step, of one replicate that
/// is the same for all candidates of the rung, since the noise between seeds is larger than what a
/// rung tells of two candidates. One that diverged or was stopped before is not among them.
struct Reached {
  std::int64_t ask = 0;  ///< number of its ask: differs from the others'
  Point point{};         ///< its objectives at the rung, minimised, finite
  bool feasible = true;  ///< whether it meets the constraints there
  bool promoted = false;
};

/// What decides among candidates of one front.
enum class Spread {
  crowding,     ///< the crowding distance of NSGA-II, largest first
  epsilon_net,  ///< the best by the first objective, then whichever is farthest from those before
};
/// @throws InputError unless "crowding" or "epsilon_net".
Spread parse_spread(std::string_view text);

/// The order in which candidates of a rung may go on: feasible ones first; of these by their front; in a front by its spread,
/// each objective scaled to the range that it has in the front; of equal points all but the first after the other points of the
/// front; ties by ask number. Depends on nothing else, such as the order of the argument. With one objective: by its value.
/// Cost: as many comparisons as n times the front's size times log n at most, for `epsilon_net` its square.
/// @return indices, the best first.
/// @see Zhang et al. (2015), ENS-BS, doi:10.1109/TEVC.2014.2308305; Schmucker et al. (2021), multi-objective asynchronous
/// successive halving, arXiv:2106.12639.
std::vector<std::size_t> promotion_order(const std::vector<Reached>& reached, Spread spread);

/// How many of n candidates that reached a rung may go on: floor(n / eta). @param eta  > 1.
std::size_t num_promoted(std::size_t n, double eta);
/// The same of a batch that is halved once all of it is there: at least one, since no later one could be the better one. Small
/// batches, and such as lose candidates to repeats, would otherwise never come to the end.
std::size_t num_halved(std::size_t n, double eta);

/// Whose turn it is to go on, if anybody's: the best one that was not promoted yet among the `count` best. @return its index.
std::optional<std::size_t> next_of_best(const std::vector<Reached>& reached, std::size_t count,
                                        Spread spread);

}  // namespace nas
