#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include <pagmo/problem.hpp>

#include "core/parameters.hpp"
#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// How an algorithm asks without waiting for whole batches: several points are out at once, and each
/// answer may decide about the next ask. All within one evolve():
///
/// ```cpp
/// Conversation conversation(problem, options.in_flight, options.arrival);
/// conversation.run(asks, [&] { return child_of(individuals); },
///                  [&](const auto& point, const auto& fitness) { enter(point, fitness); });
/// ```
///
/// In a search, what is out is evaluated at the same time, and answers come in virtual time (VirtualOrder), so that everything
/// follows from the seed and the number of points out, or in order of arrival. Where candidates are trained by rungs
/// (Fidelity), those that go on are out beside the points that are asked for, and come before these. Where the search ends,
/// next() or ask() leaves evolve() once all that is out is told. Any other problem answers in the order of asking.
class Conversation {
 public:
  using Vector = std::vector<double>;

  /// @param problem    outlives it.
  /// @param in_flight  points that are out at once, >= 1.
  /// @param arrival    whether answers are told as they arrive.
  Conversation(const pagmo::problem& problem, std::size_t in_flight, bool arrival);

  /// Asks for points while fewer than in_flight are out, and hears of the answers; at the end all
  /// that were to go on have done so.
  /// @param asks     the number of points.
  /// @param propose  the next one; empty: there is no other.
  /// @param hear     is told a point and its fitness.
  void run(std::size_t asks, const std::function<Vector()>& propose,
           const std::function<void(const Vector& point, const Vector& fitness)>& hear);

  /// Points that are out, in the order of asking.
  [[nodiscard]] std::vector<Vector> out() const;
  /// Trains a promoted candidate further. @return whether there was one.
  bool promote();
  /// @throws std::logic_error where as many are out as may be.
  void ask(const Vector& point);
  /// Waits for an answer. @return a point and its fitness; an empty point: one that was heard of has gone on.
  /// @throws std::logic_error where nothing is out.
  std::pair<Vector, Vector> next();

 private:
  const pagmo::problem& problem_;
  std::size_t in_flight_;
  bool arrival_;
  std::map<std::int64_t, Vector> out_;  ///< by the number of the ask; empty: one that goes on
  std::deque<Vector> answers_;          ///< of a problem that is no search
  std::int64_t asked_ = 0;              ///< of such
};

/// What is known at the highest rung that at least so many points have come to, where the problem is
/// a search by rungs (Fidelity); nothing where that is the first one.
/// @return points, each with its fitness.
std::vector<std::pair<Conversation::Vector, Conversation::Vector>> at_highest_rung(
    const pagmo::problem& problem, std::size_t least);

/// An algorithm's settings, and `in_flight` and `order` of one that converses, which become its
/// options `in_flight` and `arrival`.
///
/// @param in_flight  the default; 1 where it asks in batches else.
std::vector<Setting> with_conversation(std::vector<Setting> settings, std::int64_t in_flight);

}  // namespace nas
