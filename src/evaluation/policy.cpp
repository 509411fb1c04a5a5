#include "evaluation/policy.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/format.hpp"

namespace nas {

Repeated parse_repeated(std::string_view text) {
  if (text == "reuse") return Repeated::reuse;
  if (text == "retrain") return Repeated::retrain;
  if (text == "replicate") return Repeated::replicate;
  throw InputError("evaluation.repeated = " + std::string(text) +
                   ", must be one of reuse, retrain, replicate");
}

std::int64_t Retries::of(Status status) const {
  switch (status) {
    case Status::failed:
      return failed;
    case Status::out_of_memory:
      return out_of_memory;
    case Status::timed_out:
      return timed_out;
    default:
      return 0;
  }
}

Replicates answering_replicates(Repeated repeated, std::int64_t each, std::int64_t known) {
  if (repeated == Repeated::reuse) {
    return {.first = 0, .known = known, .end = std::max(known, each)};
  }
  return {.first = repeated == Repeated::retrain ? known : 0, .known = known, .end = known + each};
}

std::size_t num_arrays(std::size_t tasks, std::size_t workers, std::size_t width) {
  const auto at_once = workers * width;
  return std::min(tasks, workers * ((tasks + at_once - 1) / at_once));
}

std::vector<std::vector<std::size_t>> arrays_of(const std::vector<std::vector<std::size_t>>& groups,
                                                std::size_t workers, std::size_t width) {
  std::size_t tasks = 0;
  for (const auto& group : groups) tasks += group.size();
  const auto arrays = num_arrays(tasks, workers, width);
  std::vector<std::vector<std::size_t>> divided;
  for (const auto& group : groups) {
    const auto share = std::max((group.size() + width - 1) / width,
                                (2 * arrays * group.size() + tasks) / (2 * tasks));
    for (std::size_t i = 0; i < share; ++i) {
      const auto place = [&](std::size_t part) {
        return group.begin() + static_cast<std::ptrdiff_t>(part * group.size() / share);
      };
      divided.emplace_back(place(i), place(i + 1));
    }
  }
  std::sort(divided.begin(), divided.end());
  return divided;
}

std::string Budget::exceeded_by(std::int64_t asks_after, std::int64_t evaluations_after,
                                std::int64_t steps_after) const {
  if (asks > 0 && asks_after > asks) return std::to_string(asks) + " asks";
  if (evaluations > 0 && evaluations_after > evaluations) {
    return std::to_string(evaluations) + " evaluations";
  }
  if (train_steps > 0 && steps_after > train_steps) {
    return std::to_string(train_steps) + " training steps";
  }
  return {};
}

std::string Budget::rejected_too_often(std::int64_t rejections_in_a_row) const {
  if (rejections == 0 || rejections_in_a_row < rejections) return {};
  return std::to_string(rejections) + " candidates in a row rejected by constraints";
}

std::string Budget::used_up_by(double seconds) const {
  if (train_seconds <= 0.0 || seconds < train_seconds) return {};
  return limit_text(train_seconds) + " of training";
}

}  // namespace nas
