#include "indicators/archive.hpp"

#include <algorithm>

namespace nas {

bool Archive::insert(const std::string& candidate, const Point& point) {
  const auto [known, fresh] = points_.try_emplace(candidate, point);
  if (fresh) {
    order_.push_back(candidate);
    return insert_new(candidate, point);
  }
  if (known->second == point) return false;
  known->second = point;
  return rebuild_front();
}

bool Archive::erase(const std::string& candidate) {
  if (points_.erase(candidate) == 0) return false;
  std::erase(order_, candidate);
  return rebuild_front();
}

bool Archive::rebuild_front() {
  const auto before = std::move(front_);
  front_.clear();
  for (const auto& name : order_) insert_new(name, points_.at(name));
  return front_ != before;
}

bool Archive::insert_new(const std::string& candidate, const Point& point) {
  for (const auto& member : front_) {
    if (member.second == point || dominates(member.second, point)) return false;
  }
  std::erase_if(front_, [&point](const auto& member) { return dominates(point, member.second); });
  front_.emplace_back(candidate, point);
  return true;
}

Points Archive::front_points() const {
  Points points;
  for (const auto& member : front_) points.push_back(member.second);
  return points;
}

}  // namespace nas
