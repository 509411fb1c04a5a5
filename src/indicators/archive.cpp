#include "indicators/archive.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace nas {

namespace {

/// Whether a front of such points, ordered by the first objective, falls in the second: then the
/// neighbours of a point on it say everything.
bool is_staircase(const Point& point) { return point.size() <= 2; }

bool is_unordered(const Point& point) {
  return std::any_of(point.begin(), point.end(), [](double value) { return std::isnan(value); });
}

/// Whether a is nowhere worse than b. Such an a comes before b in the order of points.
bool covers(const Point& a, const Point& b) {
  return std::equal(a.begin(), a.end(), b.begin(), std::less_equal<>());
}

}  // namespace

bool Archive::insert(const std::string& candidate, const Point& point) {
  const auto known = members_.find(candidate);
  const bool fresh = known == members_.end();
  if (!fresh && known->second.first == point) return false;
  const Placed placed{point, fresh ? inserted_++ : known->second.second};
  if (num_unordered_ == 0 && !is_unordered(point)) {
    const bool was_on_front = !fresh && leave(known->second, &point);
    if (fresh) {
      members_.emplace(candidate, placed);
    } else {
      known->second = placed;
    }
    ordered_.emplace(placed, candidate);
    return join(placed) || was_on_front;
  }
  const auto before = front();
  if (!fresh && is_unordered(known->second.first)) --num_unordered_;
  if (is_unordered(point)) ++num_unordered_;
  members_[candidate] = placed;
  order();
  const auto now = front();
  return fresh ? now.back().first == candidate : now != before;
}

bool Archive::erase(const std::string& candidate) {
  const auto known = members_.find(candidate);
  if (known == members_.end()) return false;
  if (num_unordered_ == 0) {
    const bool was_on_front = leave(known->second, nullptr);
    members_.erase(known);
    return was_on_front;
  }
  const auto before = front();
  if (is_unordered(known->second.first)) --num_unordered_;
  members_.erase(known);
  order();
  return front() != before;
}

/// Makes what is ordered anew.
void Archive::order() {
  ordered_.clear();
  front_.clear();
  if (num_unordered_ > 0) return;
  for (const auto& [candidate, placed] : members_) {
    ordered_.emplace(placed, candidate);
    join(placed);
  }
}

/// Puts a member on the front unless it is covered by one that is there, which then goes.
/// @return whether it is on the front.
bool Archive::join(const Placed& placed) {
  const auto& point = placed.first;
  auto behind = front_.lower_bound(placed);
  const bool neighbours = is_staircase(point);
  for (auto before = behind; before != front_.begin();) {
    if (covers((--before)->first, point)) return false;
    if (neighbours) break;
  }
  while (behind != front_.end()) {
    if (covers(point, behind->first)) {
      behind = front_.erase(behind);
    } else if (neighbours) {
      break;
    } else {
      ++behind;
    }
  }
  front_.insert(placed);
  return true;
}

/// Takes a member from what is ordered; onto the front come those that it alone covered.
/// @param successor  the point that it has from now on, if any.
/// @return whether it was on the front.
bool Archive::leave(const Placed& placed, const Point* successor) {
  const auto place = front_.find(placed);
  auto member = ordered_.erase(ordered_.find(placed));
  if (place == front_.end()) return false;
  const auto& point = placed.first;
  const auto next = front_.erase(place);
  if (successor != nullptr && covers(*successor, point)) return true;
  for (; member != ordered_.end(); ++member) {
    // What comes behind the next one is covered by that, or is better than this one somewhere.
    if (is_staircase(point) && next != front_.end() && member->first == *next) break;
    if (!covers(point, member->first.first)) continue;
    if (join(member->first) && point.size() == 1) break;
  }
  return true;
}

/// The front, by the order in which its members came.
std::vector<Archive::Placed> Archive::placed_front() const {
  std::vector<Placed> found(front_.begin(), front_.end());
  const auto by_place = [](const Placed& a, const Placed& b) { return a.second < b.second; };
  std::sort(found.begin(), found.end(), by_place);
  return found;
}

/// The front as each member found it when it came: with a NaN, which is neither better nor worse
/// than any number, domination is not transitive.
std::vector<std::pair<std::string, Point>> Archive::front_by_turns() const {
  std::map<std::size_t, std::pair<std::string, Point>> members;
  for (const auto& [candidate, placed] : members_) {
    members.emplace(placed.second, std::pair(candidate, placed.first));
  }
  std::vector<std::pair<std::string, Point>> found;
  for (const auto& [place, member] : members) {
    const auto& point = member.second;
    const auto beats = [&point](const auto& other) {
      return other.second == point || dominates(other.second, point);
    };
    if (std::any_of(found.begin(), found.end(), beats)) continue;
    std::erase_if(found, [&point](const auto& other) { return dominates(point, other.second); });
    found.push_back(member);
  }
  return found;
}

std::vector<std::pair<std::string, Point>> Archive::front() const {
  if (num_unordered_ > 0) return front_by_turns();
  std::vector<std::pair<std::string, Point>> found;
  for (const auto& placed : placed_front()) {
    found.emplace_back(ordered_.find(placed)->second, placed.first);
  }
  return found;
}

Points Archive::front_points() const {
  Points points;
  if (num_unordered_ > 0) {
    for (auto& [candidate, point] : front_by_turns()) points.push_back(std::move(point));
  } else {
    for (auto& placed : placed_front()) points.push_back(std::move(placed.first));
  }
  return points;
}

std::size_t Archive::front_size() const {
  return num_unordered_ > 0 ? front_by_turns().size() : front_.size();
}

}  // namespace nas
