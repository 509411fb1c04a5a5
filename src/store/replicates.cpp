#include "store/replicates.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "core/format.hpp"

namespace nas {

namespace {

const char* words_of(Status status) {
  switch (status) {
    case Status::diverged:
      return "diverged";
    case Status::out_of_memory:
      return "ran out of memory";
    case Status::rejected:
      return "was rejected";
    case Status::timed_out:
      return "timed out";
    case Status::crashed:
      return "crashed";
    default:
      return "failed";
  }
}

bool is_stopped(const Evaluation* evaluation) {
  return evaluation->status == Status::stopped_early;
}

/// "2 of 3 replicates "
std::string share_text(Replicated evaluations, std::ptrdiff_t count) {
  return std::to_string(count) + " of " + std::to_string(evaluations.size()) + " replicates ";
}

}  // namespace

std::vector<const Evaluation*> pointers(std::span<const Evaluation> evaluations) {
  std::vector<const Evaluation*> all;
  for (const auto& evaluation : evaluations) all.push_back(&evaluation);
  return all;
}

const Evaluation& worst_of(Replicated evaluations) {
  return **std::max_element(
      evaluations.begin(), evaluations.end(),
      [](const Evaluation* a, const Evaluation* b) { return a->status < b->status; });
}

std::string value_text(double value) {
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%.12g", value);
  return shortest(std::strtod(digits.data(), nullptr));
}

bool any_stopped(Replicated evaluations) {
  return std::any_of(evaluations.begin(), evaluations.end(), is_stopped);
}

std::string failures_text(Replicated evaluations) {
  const auto& worst = worst_of(evaluations);
  if (evaluations.size() == 1) return worst.reason;
  const auto failed =
      std::count_if(evaluations.begin(), evaluations.end(),
                    [](const Evaluation* evaluation) { return !is_usable(*evaluation); });
  return share_text(evaluations, failed) + "failed, replicate " + std::to_string(worst.replicate) +
         " " + words_of(worst.status) + ": " + worst.reason;
}

std::string stops_text(Replicated evaluations) {
  const auto& first = **std::find_if(evaluations.begin(), evaluations.end(), is_stopped);
  if (evaluations.size() == 1) return first.reason;
  const auto stopped = std::count_if(evaluations.begin(), evaluations.end(), is_stopped);
  return share_text(evaluations, stopped) + "stopped early, replicate " +
         std::to_string(first.replicate) + ": " + first.reason;
}

}  // namespace nas
