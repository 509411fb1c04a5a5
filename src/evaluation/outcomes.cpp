#include "evaluation/outcomes.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace nas {

namespace {

constexpr std::size_t kEnough = 10;

std::string text_of(const Evaluation& evaluation) {
  return std::string(to_string(evaluation.status)) + ", " + evaluation.reason;
}

/// "7 times failed, no such operation; 2 times diverged, the loss is nan", the most frequent first.
std::string counted_texts(const std::vector<std::string>& outcomes) {
  std::map<std::string, int> times;
  for (const auto& outcome : outcomes) ++times[outcome];
  std::vector<std::pair<int, std::string>> order;
  for (const auto& [outcome, number] : times) order.emplace_back(-number, outcome);
  std::sort(order.begin(), order.end());
  constexpr std::size_t kShown = 5;
  std::vector<std::string> texts;
  for (const auto& [number, outcome] : order) {
    if (texts.size() == kShown) {
      texts.emplace_back("...");
      break;
    }
    texts.push_back(std::to_string(-number) + " times " + outcome);
  }
  return join(texts, "; ");
}

}  // namespace

void Outcomes::begin(std::span<const std::string> ids) {
  for (const auto& id : ids) {
    if (outcomes_.size() < kEnough) outcomes_.try_emplace(id);
  }
}

void Outcomes::recall(const Evaluation& evaluation) { succeeded_ |= is_usable(evaluation); }

void Outcomes::finish(std::span<const Evaluation> evaluations) {
  finish_first(evaluations);
  finish_latest(evaluations);
}

void Outcomes::finish_first(std::span<const Evaluation> evaluations) {
  for (const auto& evaluation : evaluations) {
    const bool screened_out = !outcomes_.contains(evaluation.id);
    succeeded_ |= is_usable(evaluation);
    if (evaluation.status == Status::rejected) {
      succeeded_ |= !screened_out;
    } else if (!screened_out || outcomes_.size() < kEnough) {
      outcomes_[evaluation.id] = text_of(evaluation);
    }
  }
  if (succeeded_ || outcomes_.size() < kEnough) return;
  std::vector<std::string> texts;
  for (const auto& [id, outcome] : outcomes_) {
    if (outcome.empty()) return;
    texts.push_back(outcome);
  }
  throw TooManyFailures("none of the first " + std::to_string(kEnough) +
                        " evaluations succeeded: " + counted_texts(texts));
}

void Outcomes::finish_latest(std::span<const Evaluation> evaluations) {
  if (window_ == 0) return;
  for (const auto& evaluation : evaluations) {
    const auto known =
        std::find_if(latest_.begin(), latest_.end(), [&evaluation](const Outcome& outcome) {
          return outcome.candidate == evaluation.candidate;
        });
    auto& outcome =
        known != latest_.end() ? *known : latest_.emplace_back(Outcome{evaluation.candidate});
    if (!is_usable(evaluation) && evaluation.status != Status::rejected) {
      outcome.failure = text_of(evaluation);
    }
    if (latest_.size() > window_) latest_.pop_front();
  }
  std::vector<std::string> failures;
  for (const auto& outcome : latest_) {
    if (!outcome.failure.empty()) failures.push_back(outcome.failure);
  }
  if (latest_.size() < window_ || 2 * failures.size() <= window_) return;
  throw TooManyFailures("too many failures, " + std::to_string(failures.size()) +
                        " of the latest " + std::to_string(window_) +
                        " candidates: " + counted_texts(failures) +
                        " (evaluation.failure_window = 0 goes on all the same)");
}

}  // namespace nas
