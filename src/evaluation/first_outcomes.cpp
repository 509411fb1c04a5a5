#include "evaluation/first_outcomes.hpp"

#include <vector>

#include "core/error.hpp"

namespace nas {

namespace {

constexpr std::size_t kEnough = 10;

}  // namespace

void FirstOutcomes::begin(std::span<const std::string> ids) {
  for (const auto& id : ids) {
    if (outcomes_.size() < kEnough) outcomes_.try_emplace(id);
  }
}

void FirstOutcomes::recall(const Evaluation& evaluation) { succeeded_ |= is_usable(evaluation); }

void FirstOutcomes::finish(std::span<const Evaluation> evaluations) {
  for (const auto& evaluation : evaluations) {
    const bool screened_out = !outcomes_.contains(evaluation.id);
    succeeded_ |= is_usable(evaluation);
    if (evaluation.status == Status::rejected) {
      succeeded_ |= !screened_out;
    } else if (!screened_out || outcomes_.size() < kEnough) {
      outcomes_[evaluation.id] =
          std::string(to_string(evaluation.status)) + ", " + evaluation.reason;
    }
  }
  if (succeeded_ || outcomes_.size() < kEnough) return;
  std::map<std::string, int> times;
  for (const auto& [id, outcome] : outcomes_) {
    if (outcome.empty()) return;
    ++times[outcome];
  }
  std::vector<std::string> texts;
  for (const auto& [outcome, number] : times) {
    texts.push_back(std::to_string(number) + " times " + outcome);
  }
  throw MachineError("none of the first " + std::to_string(kEnough) +
                     " evaluations succeeded: " + join(texts, "; "));
}

}  // namespace nas
