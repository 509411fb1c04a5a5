#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/visibility.hpp"
#include "indicators/indicators.hpp"

namespace NAS_PUBLIC nas {

/// All candidates of a search with their latest points, and the non-dominated ones among them. Of
/// candidates with equal points the first stands for all. Minimisation.
///
/// Costs, of N candidates of which F are the front: with one or two objectives log N for each
/// candidate that joins or leaves the front, and a look at those that what leaves the front alone
/// dominated; with more objectives F for each that may join, and N where one leaves.
class Archive {
 public:
  /// Adds a candidate, or replaces its point.
  /// @return whether the front changed.
  bool insert(const std::string& candidate, const Point& point);

  /// Takes a candidate out, if it is there.
  /// @return whether the front changed.
  bool erase(const std::string& candidate);

  [[nodiscard]] std::size_t size() const { return members_.size(); }
  /// Candidates of the front with their points, in the order in which they came. Cost: F log N.
  [[nodiscard]] std::vector<std::pair<std::string, Point>> front() const;
  /// The front's points alone.
  [[nodiscard]] Points front_points() const;
  /// How many candidates the front has.
  [[nodiscard]] std::size_t front_size() const;

 private:
  using Placed = std::pair<Point, std::size_t>;  // a point, and its place among the insertions

  void order();
  bool join(const Placed& placed);
  bool leave(const Placed& placed, const Point* successor);
  [[nodiscard]] std::vector<Placed> placed_front() const;
  [[nodiscard]] std::vector<std::pair<std::string, Point>> front_by_turns() const;

  std::map<std::string, Placed> members_;
  std::map<Placed, std::string> ordered_;  // the same by their points; empty with unordered ones
  std::set<Placed> front_;                 // as `ordered_`
  std::size_t inserted_ = 0;
  std::size_t num_unordered_ = 0;  // members whose point has a NaN
};

}  // namespace nas
