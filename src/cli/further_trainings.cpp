#include "cli/further_trainings.hpp"

#include <map>
#include <stdexcept>

#include "core/error.hpp"
#include "evaluation/recording_evaluator.hpp"
#include "report/stage_display.hpp"

namespace nas {

namespace {

/// Tasks of several problems as one measurement, so that all workers share them.
class SharedPool final : public Measurement {
 public:
  /// Adds a training. @return its task.
  Task add(const FurtherTraining& training) {
    auto task = make_task(*training.problem, training.candidate, training.replicate);
    problems_.emplace(task.id, training.problem);
    costs_.emplace(training.candidate, training.problem->expected_cost(training.candidate));
    return task;
  }
  [[nodiscard]] std::string canonical(const Genotype& /*genotype*/) const override {
    throw std::logic_error("further trainings are of candidates, not of genotypes");
  }
  [[nodiscard]] nlohmann::json identity(const std::string& /*candidate*/) const override {
    throw std::logic_error("further trainings bring their tasks along");
  }
  [[nodiscard]] double expected_cost(const std::string& candidate) const override {
    return costs_.at(candidate);
  }
  void screen(const Task& task, Evaluation& evaluation) override {
    problems_.at(task.id)->screen(task, evaluation);
  }
  void measure(const Task& task, Evaluation& evaluation) override {
    problems_.at(task.id)->measure(task, evaluation);
  }

 private:
  std::map<std::string, std::shared_ptr<Problem>> problems_;  ///< by task
  std::map<std::string, double> costs_;                       ///< by candidate
};

}  // namespace

std::vector<Evaluation> train_further(const std::vector<FurtherTraining>& trainings, Store& store,
                                      const std::string& stage, const FurtherDisplay& display) {
  if (trainings.empty()) return {};
  const auto pool = std::make_shared<SharedPool>();
  std::vector<std::string> ids;
  std::map<std::string, Task> distinct;
  for (const auto& training : trainings) {
    const auto task = pool->add(training);
    ids.push_back(task.id);
    distinct.emplace(task.id, task);
  }
  std::vector<Task> tasks;
  for (const auto& [id, task] : distinct) tasks.push_back(task);
  const auto& problem = trainings.front().problem;
  StageDisplay shown(*display.out, {.terminal = display.terminal,
                                    .width = display.width,
                                    .stage = stage,
                                    .total = static_cast<std::int64_t>(tasks.size()),
                                    .label = [problem](const std::string& candidate) {
                                      return problem->label(candidate);
                                    }});
  RecordingEvaluator evaluator(
      pool, store, /*objectives=*/{},
      {.workers = problem->num_workers(),
       .on_progress = [&shown](const Progress& progress) { shown.update(progress); }});
  std::map<std::string, Evaluation> results;
  for (auto& evaluation : evaluator.evaluate(tasks)) {
    results.emplace(evaluation.id, std::move(evaluation));
  }
  std::vector<Evaluation> evaluations;
  for (const auto& id : ids) evaluations.push_back(results.at(id));
  return evaluations;
}

std::shared_ptr<Problem> further_problem(const Problem& problem, const Parameters& training,
                                         const RunSummary& run) {
  auto patient = training;
  patient.set("early_stop_after", std::int64_t{0});
  auto further = problem.with_training(patient);
  if (!further) return nullptr;
  std::vector<const Evaluation*> history;  // as the search's own, so that what it knows is a part
  for (const auto& ask : run.asks) {
    for (const auto& id : ask.evaluations) history.push_back(run.by_id.at(id));
  }
  if (run.baseline) {
    history.insert(history.end(), run.baseline->evaluations.begin(),
                   run.baseline->evaluations.end());
  }
  further->begin_batch(history);
  return further;
}

void require_further_trainings(const Experiment& experiment, const Problem& problem) {
  const auto replicates = experiment.retest.get<std::int64_t>("replicates");
  if (replicates == 0 && !experiment.tuning) return;
  if (problem.with_training(experiment.training)) return;
  throw InputError((replicates > 0
                        ? "retest.replicates = " + std::to_string(replicates) + ", must be 0"
                        : "baseline.tune: must be false") +
                   ": the problem " + experiment.problem + " trains nothing");
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
