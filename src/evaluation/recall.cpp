#include "evaluation/recall.hpp"

#include <algorithm>
#include <utility>

namespace nas {

std::string question_of(const std::string& id, std::int64_t until) {
  return until == 0 ? id : id + " until " + std::to_string(until);
}
std::string question_of(const Task& task) { return question_of(task.id, task.until); }

std::int64_t steps_of(const Evaluation& evaluation) {
  return evaluation.curve.empty() ? 0 : evaluation.curve.back().step;
}

const Evaluation& Recollection::keep(const std::string& question, Evaluation evaluation) {
  if (measurement_.expensive()) evaluation.identity = nullptr;
  return known_.emplace(question, std::move(evaluation)).first->second;
}

const Evaluation& Recollection::recall(const std::string& question) {
  const auto found = known_.find(question);
  return found != known_.end() ? found->second : keep(question, find_recorded(question).value());
}

const Evaluation* Recollection::look_up(const std::string& id) {
  if (!found_.contains(id)) {
    if (auto stored = store_.find(id)) {
      found_[id].evaluation = std::move(*stored);
    } else if (auto other = elsewhere_ ? elsewhere_(id) : std::nullopt) {
      found_[id] = {.evaluation = std::move(*other), .elsewhere = true};
    } else {
      return nullptr;
    }
  }
  return &found_.at(id).evaluation;
}

auto Recollection::take(const std::string& id) -> std::optional<Found> {
  if (look_up(id) == nullptr) return std::nullopt;
  return std::move(found_.extract(id).mapped());
}

/// What there is of an id, which the store then has.
std::optional<Evaluation> Recollection::find_recorded(const std::string& id) {
  auto found = take(id);
  if (!found) return std::nullopt;
  if (found->elsewhere) store_.add({found->evaluation});
  return std::move(found->evaluation);
}

/// The same of a training run that pauses: the store then has of one that was made elsewhere what it
/// would have of its own.
std::optional<Evaluation> Recollection::find_paused(const Task& task) {
  auto found = take(task.id);
  if (!found) return store_.find_partial(task.id);
  if (found->elsewhere) {
    auto part = found->evaluation;
    measurement_.end_at(part, task.until);
    require_finite_values(part);
    record({std::move(part)});
  }
  return std::move(found->evaluation);
}

std::optional<Evaluation> Recollection::find_answer(const Task& task) {
  if (task.until > 0 && !measurement_.expensive()) return std::nullopt;
  auto found = task.until > 0 ? find_paused(task) : find_recorded(task.id);
  return found && answers(*found, task.until) ? std::move(found) : std::nullopt;
}

void Recollection::record(std::vector<Evaluation> evaluations) {
  const auto paused =
      std::stable_partition(evaluations.begin(), evaluations.end(),
                            [](const auto& one) { return one.status != Status::paused; });
  store_.add_partials({paused, evaluations.end()});
  evaluations.erase(paused, evaluations.end());
  if (!evaluations.empty()) store_.add(evaluations);
}

void Recollection::keep_part(Evaluation& evaluation) const {
  if (is_usable(evaluation) || !measurement_.expensive()) return;
  const auto part = store_.find_partial(evaluation.id);
  if (!part || steps_of(*part) <= steps_of(evaluation)) return;
  evaluation.curve = part->curve;
  for (const auto* taken : {"train_seconds", "cpu_seconds"}) {
    if (part->measured.contains(taken)) evaluation.measured[taken] = part->measured.at(taken);
  }
}

void Recollection::forget(const std::function<std::set<std::string>()>& wanted) {
  constexpr std::size_t kMost = 4096;
  found_.clear();
  if (measurement_.expensive() || known_.size() <= std::max(kMost, 2 * num_kept_)) return;
  std::erase_if(known_, [stay = wanted()](const auto& one) {
    return one.first == one.second.id && !stay.contains(one.first);
  });
  num_kept_ = known_.size();
}

void Recollection::recall_forgotten(const std::string& id) {
  if (measurement_.expensive() || known_.contains(id)) return;
  if (auto recorded = find_recorded(id)) keep(id, std::move(*recorded));
}

}  // namespace nas
