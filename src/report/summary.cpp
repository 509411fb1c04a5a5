#include "report/summary.hpp"

#include <algorithm>
#include <limits>

#include "search/objective.hpp"

namespace nas {

double measured_number(const Evaluation& evaluation, const char* name) {
  const auto found = evaluation.measured.find(name);
  return found != evaluation.measured.end() && found->is_number() ? found->get<double>() : 0.0;
}

std::string RunSummary::label(const std::string& candidate) const {
  return labels_.is_object() ? labels_.value(candidate, candidate) : candidate;
}

namespace {

void add_evaluation(RankedCandidate& candidate, const Evaluation& evaluation,
                    const Objective& objective) {
  candidate.evaluations.push_back(&evaluation);
  if (!is_usable(evaluation)) return;
  ++candidate.n;
  candidate.value +=
      (objective.value(evaluation) - candidate.value) / static_cast<double>(candidate.n);
}

}  // namespace

RunSummary::RunSummary(const Store& store) : evaluations(store.evaluations()), asks(store.asks()) {
  config = store.meta("config").value_or(nlohmann::json::object());
  facts = store.meta("facts").value_or(nlohmann::json::object());
  environment = store.meta("environment").value_or(nlohmann::json::object());
  labels_ = store.meta("labels").value_or(nlohmann::json::object());
  objective = config.contains("objectives") ? config["objectives"].front().get<std::string>()
                                            : "perplexity";
  for (const auto& evaluation : evaluations) {
    by_id[evaluation.id] = &evaluation;
    train_seconds += measured_number(evaluation, "train_seconds");
    if (!is_usable(evaluation)) failures.push_back(&evaluation);
  }

  const Objective ranked_by = objectives().at(objective).make();
  std::map<std::string, RankedCandidate> by_candidate;
  std::map<std::string, bool> counted;
  for (const auto& ask : asks) {
    const Evaluation& evaluation = *by_id.at(ask.evaluation);
    auto& candidate = by_candidate[evaluation.candidate];
    if (candidate.first_ask < 0) candidate.first_ask = ask.number;
    ++candidate.times_asked;
    reused += ask.reused ? 1 : 0;
    if (!counted[evaluation.id]) add_evaluation(candidate, evaluation, ranked_by);
    counted[evaluation.id] = true;

    if (batches.empty() || batches.back().batch != ask.batch) {
      const double infinity = std::numeric_limits<double>::infinity();
      batches.push_back({.batch = ask.batch,
                         .best = infinity,
                         .best_so_far = batches.empty() ? infinity : batches.back().best_so_far});
    }
    auto& batch = batches.back();
    ++batch.asked;
    if (!is_usable(evaluation)) {
      ++batch.failures;
      continue;
    }
    const double value = ask.fitness.front();
    batch.best = std::min(batch.best, value);
    batch.best_so_far = std::min(batch.best_so_far, value);
    batch.mean += (value - batch.mean) / static_cast<double>(batch.asked - batch.failures);
  }
  for (auto& [name, candidate] : by_candidate) {
    candidate.candidate = name;
    candidate.label = label(name);
    if (candidate.n > 0) ranking.push_back(candidate);
  }
  std::stable_sort(ranking.begin(), ranking.end(), [](const auto& a, const auto& b) {
    return a.value != b.value ? a.value < b.value : a.first_ask < b.first_ask;
  });

  const auto baseline_id = store.meta("baseline");
  if (baseline_id && by_id.contains(baseline_id->get<std::string>())) {
    const Evaluation& evaluation = *by_id.at(baseline_id->get<std::string>());
    const auto asked = by_candidate.find(evaluation.candidate);
    RankedCandidate candidate;
    if (asked != by_candidate.end()) {
      candidate = asked->second;
    } else {
      candidate.candidate = evaluation.candidate;
      candidate.label = label(evaluation.candidate);
      add_evaluation(candidate, evaluation, ranked_by);
    }
    if (candidate.n > 0) baseline = candidate;
  }
}

}  // namespace nas
