#include <algorithm>
#include <exception>
#include <utility>

#include "core/stop.hpp"
#include "evaluation/evaluator_state.hpp"
#include "evaluation/failures.hpp"
#include "evaluation/local_executor.hpp"

namespace nas {

RecordingEvaluator::State::State(std::shared_ptr<Measurement> measured_by, Store& kept_in,
                                 Judge judged_by, Options chosen)
    : measurement(std::move(measured_by)),
      store(kept_in),
      options(std::move(chosen)),
      judge(std::move(judged_by)),
      executor(options.executor ? options.executor
                                : local_executor(*measurement, options.workers)) {}

void RecordingEvaluator::State::report(Progress::Kind kind, const Evaluation* evaluation,
                                       const Evaluation* last, const Advance& advance) const {
  if (!options.on_progress) return;
  const bool finished = kind == Progress::Kind::batch_finished;
  options.on_progress({.kind = kind,
                       .batch = batches,
                       .asked = ledger.asked() - (finished ? std::ssize(asks) : 0),
                       .trained = trained,
                       .rejected = rejected,
                       .reused = reused,
                       .evaluation = evaluation,
                       .screening = batch.together ? std::ssize(asks) + 1 : 1,
                       .batch_size = batch.size,
                       .last = last,
                       .advance = advance,
                       .seconds_left = ledger.seconds_left()});
}

/// Whether there is an answer to a task: known, or recalled from the store.
bool RecordingEvaluator::State::recall(const Task& task) {
  // What was screened for an ask is in no record, as is_rejected() has seen.
  if (task.until == 0 && screened.contains(task.id)) return false;
  if (known.contains(question_of(task))) return true;
  auto found = known.find_answer(task);
  if (!found) return false;
  outcomes.recall(*found);
  if (measurement->expensive()) measurement->recorded(*found);
  if (task.until > 0) {
    measurement->end_at(*found, task.until);
    require_finite_values(*found);
  }
  known.keep(question_of(task), std::move(*found));
  ++reused;
  return true;
}

const Evaluation& RecordingEvaluator::State::screen(const Task& task) {
  const auto found = screened.find(task.id);
  if (found != screened.end()) return found->second;
  if (stop_requested()) throw StopRequested();
  return screened.emplace(task.id, screened_alone(*measurement, task)).first->second;
}

std::vector<Task> RecordingEvaluator::State::begin(std::vector<Task> tasks, std::int64_t ask) {
  std::erase_if(tasks, [this](const Task& task) {
    if (!recall(task)) return false;
    charge(known.at(question_of(task)));
    return true;
  });
  if (tasks.empty()) return tasks;
  preview();
  if (batch.together) record_asking();
  if (options.on_measuring) options.on_measuring(ask);
  std::vector<std::pair<double, const Task*>> order;
  for (const auto& task : tasks) {
    if (stop_requested()) stop();
    if (const auto& evaluation = screen(task); evaluation.status != Status::ok) {
      screen_out(evaluation, question_of(task));
    } else {
      order.emplace_back(measurement->expected_cost(task.candidate), &task);
    }
  }
  // The dearest first, so that all end together; but where time ends the search, what is asked first,
  // since what follows an unanswered ask is lost to it.
  if (!ledger.seconds_left()) {
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
  }
  if (!one_by_one()) measuring.clear();
  if (one_by_one() || !ledger.out_of_time()) {
    for (const auto& [cost, task] : order) submit(*task);
  }
  screened.clear();
  return tasks;
}

void RecordingEvaluator::State::recall_or_measure(std::vector<Task> tasks, std::int64_t ask) {
  const auto unknown = begin(std::move(tasks), ask);
  if (unknown.empty()) return;
  std::exception_ptr ended_by;
  try {
    while (hear()) {
    }
  } catch (...) {
    ended_by = std::current_exception();
  }
  if (!measurement->expensive()) {
    std::vector<Evaluation> results;
    for (const auto& task : unknown) {
      if (known.contains(question_of(task))) results.push_back(known.at(question_of(task)));
    }
    known.record(std::move(results));
  }
  if (ended_by) std::rethrow_exception(ended_by);
}

/// Has a task measured that was screened.
void RecordingEvaluator::State::submit(const Task& task) {
  auto& evaluation = screened.at(task.id);
  evaluation.status = Status::failed;  // until measured
  measuring.insert_or_assign(task.id, Measured{task, evaluation});
  at_work.submitted(1);
  executor->submit(task, std::move(evaluation));
}

bool RecordingEvaluator::State::hear() {
  try {
    auto event = executor->next();
    at_work.employ(executor->workers());
    if (event) handle(std::move(*event));
    return event.has_value();
  } catch (...) {
    executor->abandon();
    throw;
  }
}

/// @param question  that it answers, see question_of().
void RecordingEvaluator::State::screen_out(Evaluation evaluation, const std::string& question) {
  known.keep_part(evaluation);
  if (measurement->expensive() || one_by_one()) store.add({evaluation});
  if (measurement->expensive()) measurement->recorded(evaluation);  // it may have begun before
  known.keep(question, evaluation);
  if (is_screened_out(evaluation)) ++rejected;
  report(Progress::Kind::evaluation_screened_out, &evaluation);
  preview();
  if (measurement->expensive()) outcomes.finish({&evaluation, 1});
}

/// Has a task measured once more, from its beginning, where that may come to something else.
bool RecordingEvaluator::State::try_again(const Evaluation& result) {
  const auto most = options.retries.of(result.status);
  if (most == 0 || ledger.out_of_time()) return false;
  auto& [task, evaluation] = measuring.at(result.id);
  auto& tries = evaluation.measured["failed_tries"];
  const auto again = std::string(to_string(result.status));
  const auto before = std::count_if(tries.begin(), tries.end(), [&again](const auto& text) {
    return text.template get<std::string>().starts_with(again);
  });
  if (before >= most) return false;
  tries.push_back(again + ": " + result.reason);
  if (const auto seconds = result.measured.value("train_seconds", 0.0); seconds > 0.0) {
    evaluation.measured[kFailedSeconds] = evaluation.measured.value(kFailedSeconds, 0.0) + seconds;
  }
  if (measurement->expensive()) measurement->recorded(result);
  executor->submit(task, evaluation);
  at_work.finished({result});
  at_work.submitted(1);
  return true;
}

void RecordingEvaluator::State::handle(Executor::Event event) {
  switch (event.kind) {
    case Executor::Event::Kind::started:
      outcomes.begin(event.ids);
      if (measurement->expensive()) at_work.started(measured(event.ids));
      for (const auto* evaluation : measured(event.ids)) {
        report(Progress::Kind::evaluation_started, evaluation);
      }
      break;
    case Executor::Event::Kind::advanced:
      // Of what has finished elsewhere nothing more is told.
      if (!std::all_of(event.ids.begin(), event.ids.end(),
                       [this](const auto& id) { return measuring.contains(id); })) {
        break;
      }
      at_work.advanced(measured(event.ids), event.advance);
      report(Progress::Kind::evaluation_advanced, measured(event.ids).front(),
             measured(event.ids).back(), event.advance);
      break;
    case Executor::Event::Kind::finished:
      commit(std::move(event.evaluations));
      if (!one_by_one() && ledger.out_of_time()) {
        executor->withdraw();
        at_work.withdrawn();
      }
      break;
  }
}

std::vector<const Evaluation*> RecordingEvaluator::State::measured(
    const std::vector<std::string>& ids) const {
  std::vector<const Evaluation*> evaluations;
  for (const auto& id : ids) evaluations.push_back(&measuring.at(id).evaluation);
  return evaluations;
}

/// Stores what was measured together.
void RecordingEvaluator::State::commit(std::vector<Evaluation> results) {
  for (auto& evaluation : results) {
    require_finite_values(evaluation);
    if (measurement->expensive()) fail_before(evaluation, measuring.at(evaluation.id).task.until);
  }
  require_judgeable(results);
  std::erase_if(results, [this](const auto& evaluation) { return try_again(evaluation); });
  if (results.empty()) return;
  for (auto& evaluation : results) known.keep_part(evaluation);
  // Those of a batch of cheap ones are stored together.
  if (measurement->expensive() || one_by_one()) known.record(results);
  if (measurement->expensive()) {
    for (const auto& evaluation : results) measurement->recorded(evaluation);
  }
  for (const auto& evaluation : results) {
    known.keep(question_of(measuring.at(evaluation.id).task), evaluation);
    ++trained;
    charge(evaluation);
    report(Progress::Kind::evaluation_finished, &evaluation);
  }
  at_work.finished(results);
  for (const auto& evaluation : results) measuring.erase(evaluation.id);
  preview();
  if (measurement->expensive()) outcomes.finish(results);
}

void RecordingEvaluator::State::stop() {
  while (hear()) {
  }
  throw StopRequested();
}

}  // namespace nas
