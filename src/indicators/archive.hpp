#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/visibility.hpp"
#include "indicators/indicators.hpp"

namespace NAS_PUBLIC nas {

/// All candidates of a search with their latest points, and the non-dominated ones among them. Of
/// candidates with equal points the first stands for all. Minimisation.
class Archive {
 public:
  /// Adds a candidate, or replaces its point. Cost: the size of the front; where a point was
  /// replaced, the square of the number of candidates.
  /// @return whether the front changed.
  bool insert(const std::string& candidate, const Point& point);

  /// Takes a candidate out, if it is there. Cost: as for a point that is replaced.
  /// @return whether the front changed.
  bool erase(const std::string& candidate);

  [[nodiscard]] std::size_t size() const { return members_.size(); }
  /// Candidates of the front with their points, in the order in which they came.
  [[nodiscard]] const std::vector<std::pair<std::string, Point>>& front() const { return front_; }
  /// The front's points alone.
  [[nodiscard]] Points front_points() const;

 private:
  bool rebuild_front();
  bool insert_new(const std::string& candidate, const Point& point);

  struct Member {
    Point point;
    std::size_t place;  ///< among the first insertions
  };
  std::map<std::string, Member> members_;
  std::size_t inserted_ = 0;
  std::vector<std::pair<std::string, Point>> front_;
};

}  // namespace nas
