#include "evaluation/recording_evaluator.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <unistd.h>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/hash.hpp"
#include "core/host.hpp"
#include "core/stop.hpp"

namespace nas {

namespace {

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

/// A genotype as text, gene by gene: for lineage and reports.
std::string to_text(const Genotype& genotype) {
  std::vector<std::string> fields;
  for (const auto& [name, value] : genotype.values()) {
    const auto* option = std::get_if<std::string>(&value);
    fields.push_back(option != nullptr ? *option : shortest(std::get<double>(value)));
  }
  return join(fields, "|");
}

}  // namespace

struct RecordingEvaluator::State {
  std::shared_ptr<Measurement> measurement;
  Store& store;
  Objectives objectives;
  Options options;

  std::int64_t asked = 0;
  std::int64_t batches = 0;
  std::int64_t trained = 0;
  std::int64_t reused = 0;
  std::map<std::string, Evaluation> known{};  ///< by id: everything this run has asked for
  std::map<std::string, std::vector<std::string>> replicates{};  ///< ids by candidate
  std::map<std::string, std::int64_t> times_asked{};             ///< by candidate
  std::set<std::string> charged{};           ///< ids of evaluations that asks have caused
  double train_seconds = 0.0;                ///< of these, as far as they are there
  std::string spent{};                       ///< what ended the search
  std::vector<const Evaluation*> history{};  ///< of finished batches, in ask order
  std::mutex progress_mutex{};

  void report(Progress::Kind kind, const Evaluation* evaluation = nullptr) {
    if (!options.on_progress) return;
    options.on_progress({.kind = kind,
                         .batch = batches,
                         .asked = asked,
                         .trained = trained,
                         .reused = reused,
                         .evaluation = evaluation});
  }

  [[nodiscard]] Task make_task(const std::string& candidate, std::int64_t replicate) const {
    Task task{.candidate = candidate, .replicate = replicate, .id = {}, .identity = {}};
    task.identity = measurement->identity(candidate);
    task.identity["candidate"] = candidate;
    task.identity["replicate"] = replicate;
    task.id = sha256(task.identity.dump());
    return task;
  }

  [[nodiscard]] bool over_train_seconds() const {
    return !options.budget.used_up_by(train_seconds).empty();
  }

  struct Pending;
  std::vector<Pending> assign(const std::vector<Genotype>& batch, std::vector<Task>& tasks);
  void recall_or_measure(std::vector<Task> tasks);
  void measure_all(std::vector<Task> tasks);
  void charge(const Evaluation& evaluation);
  [[nodiscard]] std::vector<double> fitness(const std::vector<std::string>& ids) const;
};

/// An ask whose evaluations are decided, but perhaps not there yet.
struct RecordingEvaluator::State::Pending {
  std::string candidate;
  std::vector<std::string> ids;
  bool reused;
  std::int64_t earlier_asks;
};

/// Decides which evaluations answer a batch, as far as the budget goes.
/// @param tasks  receives those that this run has not asked for before.
std::vector<RecordingEvaluator::State::Pending> RecordingEvaluator::State::assign(
    const std::vector<Genotype>& batch, std::vector<Task>& tasks) {
  std::vector<Pending> pending;
  for (const auto& genotype : batch) {
    const auto candidate = measurement->canonical(genotype);
    auto& ids = replicates[candidate];
    const auto answering = answering_replicates(options.repeated, options.replicates,
                                                static_cast<std::int64_t>(ids.size()));
    spent = options.budget.exceeded_by(
        asked + static_cast<std::int64_t>(pending.size()) + 1,
        static_cast<std::int64_t>(charged.size()) + answering.num_fresh());
    if (!spent.empty()) break;
    for (auto replicate = answering.known; replicate < answering.end; ++replicate) {
      auto task = make_task(candidate, replicate);
      ids.push_back(task.id);
      charged.insert(task.id);
      tasks.push_back(std::move(task));
    }
    const bool reuse = answering.num_fresh() == 0;
    pending.push_back(
        {.candidate = candidate,
         .ids = {ids.begin() + static_cast<std::ptrdiff_t>(answering.first), ids.end()},
         .reused = reuse,
         .earlier_asks = times_asked[candidate]++});
    if (reuse) ++reused;
  }
  return pending;
}

void RecordingEvaluator::State::charge(const Evaluation& evaluation) {
  const auto seconds = evaluation.measured.find("train_seconds");
  if (charged.contains(evaluation.id) && seconds != evaluation.measured.end()) {
    train_seconds += seconds->get<double>();
  }
}

/// Tasks that the store knows are recalled; the others are measured.
void RecordingEvaluator::State::recall_or_measure(std::vector<Task> tasks) {
  std::vector<Task> unknown;
  for (auto& task : tasks) {
    if (const auto found = known.find(task.id); found != known.end()) {
      charge(found->second);
    } else if (auto recorded = store.find(task.id)) {
      charge(*recorded);
      known.emplace(task.id, std::move(*recorded));
      ++reused;
    } else {
      unknown.push_back(std::move(task));
    }
  }
  if (!unknown.empty()) measure_all(std::move(unknown));
}

namespace {

/// An evaluation of which everything is known that is known beforehand.
Evaluation begun(const Task& task) {
  Evaluation evaluation;
  evaluation.id = task.id;
  evaluation.candidate = task.candidate;
  evaluation.replicate = task.replicate;
  evaluation.identity = task.identity;
  evaluation.measured = {{"started", utc_now()}, {"pid", getpid()}, {"host", host_name()}};
  return evaluation;
}

/// Calls what works on an evaluation; its exceptions become the evaluation's status.
template <class Work>
void guarded(Evaluation& evaluation, Work work) {
  const auto fail = [&evaluation](Status status, const char* reason) {
    evaluation.status = status;
    evaluation.reason = reason;
  };
  try {
    work();
  } catch (const StopRequested&) {
    throw;
  } catch (const MemoryLimitExceeded& error) {
    fail(Status::out_of_memory, error.what());
  } catch (const std::bad_alloc&) {
    fail(Status::out_of_memory, "the system has no memory left");
  } catch (const std::exception& error) {
    fail(Status::failed, error.what());
  }
}

}  // namespace

/// Screens one task after the other, then measures the remaining ones on a pool of workers, the
/// longest first. Which worker does what changes nothing: a result depends on its task.
void RecordingEvaluator::State::measure_all(std::vector<Task> tasks) {
  std::vector<std::unique_ptr<Evaluation>> results(tasks.size());
  const auto finish = [&](std::size_t task) {
    if (measurement->expensive()) store.add({*results[task]});
    const std::lock_guard lock(progress_mutex);
    ++trained;
    charge(*results[task]);
    report(Progress::Kind::evaluation_finished, results[task].get());
  };
  std::vector<std::size_t> order;
  std::vector<std::unique_ptr<Evaluation>> screened(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (stop_requested()) throw StopRequested();
    auto evaluation = std::make_unique<Evaluation>(begun(tasks[i]));
    evaluation->status = Status::ok;
    guarded(*evaluation, [&] { measurement->screen(tasks[i], *evaluation); });
    if (evaluation->status == Status::ok) {
      evaluation->status = Status::failed;  // until measured
      screened[i] = std::move(evaluation);
      order.push_back(i);
    } else {
      results[i] = std::move(evaluation);
      finish(i);
    }
  }
  std::vector<double> costs;
  for (const auto& task : tasks) costs.push_back(measurement->expected_cost(task.candidate));
  std::stable_sort(order.begin(), order.end(),
                   [&costs](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });

  std::atomic<std::size_t> next{0};
  std::atomic<bool> stopped{false};
  std::atomic<bool> exhausted{false};
  std::exception_ptr broken;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < order.size() && !stopped && !exhausted; i = next++) {
        if (stop_requested()) throw StopRequested();
        const std::size_t task = order[i];
        auto& evaluation = *screened[task];
        {
          const std::lock_guard lock(progress_mutex);
          if (over_train_seconds()) {
            exhausted = true;
            break;
          }
          report(Progress::Kind::evaluation_started, &evaluation);
        }
        guarded(evaluation, [&] { measurement->measure(tasks[task], evaluation); });
        results[task] = std::move(screened[task]);
        finish(task);
      }
    } catch (const StopRequested&) {
      stopped = true;
    } catch (...) {  // the store or a display is broken: no worker may go on
      const std::lock_guard lock(progress_mutex);
      broken = std::current_exception();
      stopped = true;
    }
  };
  if (measurement->expensive()) {
    // Always on threads of their own: a worker sets its thread's number of OpenMP threads.
    std::vector<std::thread> workers;
    const auto count =
        std::min<std::size_t>(static_cast<std::size_t>(std::max(1, options.workers)), order.size());
    for (std::size_t i = 0; i < count; ++i) workers.emplace_back(work);
    for (auto& worker : workers) worker.join();
  } else {
    work();
  }

  std::vector<Evaluation> cheap;
  for (auto& result : results) {
    if (!result) continue;
    if (!measurement->expensive()) cheap.push_back(*result);
    known.emplace(result->id, std::move(*result));
  }
  if (!cheap.empty()) store.add(cheap);
  if (broken) std::rethrow_exception(broken);
  if (stopped) throw StopRequested();
}

std::vector<double> RecordingEvaluator::State::fitness(const std::vector<std::string>& ids) const {
  std::vector<const Evaluation*> evaluations;
  for (const auto& id : ids) evaluations.push_back(&known.at(id));
  return objectives(evaluations);
}

RecordingEvaluator::RecordingEvaluator(std::shared_ptr<Measurement> measurement, Store& store,
                                       Objectives objectives, Options options)
    : state_(new State{.measurement = std::move(measurement),
                       .store = store,
                       .objectives = std::move(objectives),
                       .options = std::move(options)}) {}

RecordingEvaluator::~RecordingEvaluator() = default;

std::vector<Answer> RecordingEvaluator::ask(const std::vector<Genotype>& batch) {
  auto& state = *state_;
  if (stop_requested()) throw StopRequested();
  if (!state.spent.empty()) return {};
  state.measurement->begin_batch(state.history);
  std::vector<Task> tasks;
  const auto pending = state.assign(batch, tasks);
  const std::int64_t first = state.asked;
  state.asked += static_cast<std::int64_t>(pending.size());
  {
    const std::lock_guard lock(state.progress_mutex);
    state.report(Progress::Kind::batch_started);
  }
  state.recall_or_measure(std::move(tasks));

  std::vector<Answer> answers;
  std::vector<Ask> record;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const auto& ask = pending[i];
    const auto there = [&state](const std::string& id) { return state.known.contains(id); };
    if (!std::all_of(ask.ids.begin(), ask.ids.end(), there)) break;
    const bool usable = std::any_of(ask.ids.begin(), ask.ids.end(), [&](const std::string& id) {
      return is_usable(state.known.at(id));
    });
    answers.push_back({.candidate = ask.candidate,
                       .fitness = state.fitness(ask.ids),
                       .usable = usable,
                       .earlier_asks = ask.earlier_asks});
    record.push_back({.number = first + static_cast<std::int64_t>(i),
                      .batch = state.batches,
                      .genotype = to_text(batch[i]),
                      .evaluations = ask.ids,
                      .reused = ask.reused,
                      .fitness = answers.back().fitness});
    for (const auto& id : ask.ids) state.history.push_back(&state.known.at(id));
  }
  state.asked = first + static_cast<std::int64_t>(answers.size());
  state.store.add_asks(record);
  if (state.over_train_seconds()) {
    state.spent = state.options.budget.used_up_by(state.train_seconds);
  }
  const std::lock_guard lock(state.progress_mutex);
  state.report(Progress::Kind::batch_finished);
  ++state.batches;
  return answers;
}

std::vector<Evaluation> RecordingEvaluator::evaluate(const std::string& candidate) {
  auto& state = *state_;
  std::vector<Task> tasks;
  std::vector<std::string> ids;
  for (std::int64_t replicate = 0; replicate < state.options.replicates; ++replicate) {
    tasks.push_back(state.make_task(candidate, replicate));
    ids.push_back(tasks.back().id);
  }
  state.recall_or_measure(std::move(tasks));
  std::vector<Evaluation> evaluations;
  for (const auto& id : ids) evaluations.push_back(state.known.at(id));
  return evaluations;
}

std::int64_t RecordingEvaluator::num_asked() const { return state_->asked; }
std::int64_t RecordingEvaluator::num_evaluated() const {
  return static_cast<std::int64_t>(state_->charged.size());
}
std::int64_t RecordingEvaluator::num_batches() const { return state_->batches; }
std::string RecordingEvaluator::spent() const { return state_->spent; }

}  // namespace nas
