#include "indicators/archive.hpp"

#include <algorithm>

namespace nas {

bool Archive::insert(const std::string& candidate, const Point& point) {
  const auto [known, fresh] = members_.try_emplace(candidate, Member{point, inserted_});
  if (fresh) {
    ++inserted_;
    return insert_new(candidate, point);
  }
  if (known->second.point == point) return false;
  known->second.point = point;
  return rebuild_front();
}

bool Archive::erase(const std::string& candidate) {
  if (members_.erase(candidate) == 0) return false;
  return rebuild_front();
}

bool Archive::rebuild_front() {
  const auto before = std::move(front_);
  front_.clear();
  std::vector<const std::pair<const std::string, Member>*> ordered;
  ordered.reserve(members_.size());
  for (const auto& member : members_) ordered.push_back(&member);
  std::sort(ordered.begin(), ordered.end(),
            [](const auto* a, const auto* b) { return a->second.place < b->second.place; });
  for (const auto* member : ordered) insert_new(member->first, member->second.point);
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
