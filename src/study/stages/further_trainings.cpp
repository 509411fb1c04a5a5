#include "study/stages/further_trainings.hpp"

#include <map>
#include <numeric>
#include <set>

#include "core/error.hpp"
#include "evaluation/recording_evaluator.hpp"
#include "study/session/session.hpp"

namespace nas {

std::vector<std::int64_t> replicates_from(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> replicates(static_cast<std::size_t>(count));
  std::iota(replicates.begin(), replicates.end(), first);
  return replicates;
}

void train_further(std::vector<FurtherTraining>& trainings, const StageWork& work,
                   const std::string& stage, const std::shared_ptr<Problem>& by) {
  if (trainings.empty()) return;
  std::vector<std::string> ids;
  std::set<std::string> distinct;
  std::vector<Task> tasks;
  for (const auto& training : trainings) {
    for (const auto replicate : training.replicates) {
      auto task = make_task(*training.problem, training.candidate, replicate);
      ids.push_back(task.id);
      if (distinct.insert(task.id).second) tasks.push_back(std::move(task));
    }
  }
  const auto& problem = by ? by : trainings.front().problem;  // it measures others' tasks as well
  RecordingEvaluator evaluator(
      problem, work.store, /*judge=*/{},
      {.workers = problem->num_workers(),
       .executor = work.executor,
       .retries = retries_of(work.experiment),
       .recall = work.recall,
       .on_progress =
           [&work](const Progress& progress) { work.observer.stage_progressed(progress); },
       .stage = stage});
  work.observer.stage_begins({.name = stage,
                              .total = static_cast<std::int64_t>(tasks.size()),
                              .problem = *problem,
                              .baseline = work.experiment.baseline});
  const ToldEnd end(work.observer, &Observer::stage_ended);
  std::map<std::string, Evaluation> results;
  for (auto& evaluation : evaluator.evaluate(tasks)) {
    results.emplace(evaluation.id, std::move(evaluation));
  }
  auto id = ids.begin();
  for (auto& training : trainings) {
    for (std::size_t i = 0; i < training.replicates.size(); ++i) {
      training.evaluations.push_back(results.at(*id++));
    }
  }
}

std::vector<const RankedCandidate*> best_candidates(const RunSummary& run, std::size_t count,
                                                    const std::string& baseline) {
  std::vector<const RankedCandidate*> best;
  for (const auto& candidate : run.ranking) {
    if (best.size() == count) break;
    if (candidate.candidate != baseline) best.push_back(&candidate);
  }
  return best;
}

}  // namespace nas
