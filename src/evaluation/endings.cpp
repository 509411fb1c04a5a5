#include "evaluation/endings.hpp"

#include <algorithm>
#include <utility>

#include "core/format.hpp"

namespace nas {

Endings::Endings(std::filesystem::path folder, double time_limit, std::int64_t retry_crashed)
    : folder_(std::move(folder)), time_limit_(time_limit), retry_crashed_(retry_crashed) {}

std::vector<std::string> Endings::of(const std::string& id) const {
  if (folder_.empty()) return {};
  return endings_of(folder_ / kEndingsFile, id);
}

std::unique_ptr<InFlight> Endings::mark(std::span<const Assignment> array) const {
  if (folder_.empty()) return nullptr;
  std::vector<std::string> ids;
  for (const auto& member : array) ids.push_back(member.task.id);
  constexpr double kHangs = 2.0;  // times as long as a limit, which is looked at between steps
  constexpr double kBuilding = 30.0;
  const double seconds = time_limit_ > 0.0
                             ? kBuilding + kHangs * time_limit_ * static_cast<double>(array.size())
                             : 0.0;
  return std::make_unique<InFlight>(folder_ / kEndingsFile, std::move(ids), seconds);
}

void Endings::require_alone(std::span<const Assignment> array) const {
  if (array.size() > 1 || array[0].evaluation.measured.contains("alone")) return;
  const auto ends = of(array[0].task.id);
  if (std::count(ends.begin(), ends.end(), InFlight::kBeside) > 0) throw MeasureAlone();
}

std::vector<std::vector<std::size_t>> Endings::apart(std::vector<std::vector<std::size_t>> groups,
                                                     std::span<const Assignment> tasks) const {
  std::vector<std::vector<std::size_t>> alone;
  for (auto& group : groups) {
    std::erase_if(group, [&](std::size_t place) {
      if (of(tasks[place].task.id).empty()) return false;
      alone.push_back({place});
      return true;
    });
  }
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  groups.insert(groups.end(), alone.begin(), alone.end());
  std::sort(groups.begin(), groups.end());
  return groups;
}

bool Endings::decide(Evaluation& evaluation) const {
  auto ends = of(evaluation.id);
  std::erase(ends, InFlight::kBeside);
  if (std::ssize(ends) <= retry_crashed_) return false;
  const bool overdue = ends.back() == InFlight::kOverdue;
  evaluation.status = overdue ? Status::timed_out : Status::crashed;
  evaluation.reason =
      overdue ? "it hung for more than twice evaluation.time_limit = " + shortest(time_limit_) +
                    " s, " + std::to_string(ends.size()) + " times"
              : "it ended the process " + std::to_string(ends.size()) + " times, by " + ends.back();
  return true;
}

}  // namespace nas
