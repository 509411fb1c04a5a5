#include "evaluation/evaluator.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include <unistd.h>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/hash.hpp"
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

std::string host_name() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return host.data();
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

std::vector<double> mean(const std::vector<std::vector<double>>& rows) {
  std::vector<double> sum(rows.front().size(), 0.0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) sum[i] += row[i];
  }
  for (auto& value : sum) value /= static_cast<double>(rows.size());
  return sum;
}

}  // namespace

Repeated parse_repeated(std::string_view text) {
  if (text == "reuse") return Repeated::reuse;
  if (text == "retrain") return Repeated::retrain;
  if (text == "replicate") return Repeated::replicate;
  throw InputError("evaluation.repeated = " + std::string(text) +
                   ", must be one of reuse, retrain, replicate");
}

struct Evaluator::State {
  std::shared_ptr<Measurement> measurement;
  Store& store;
  Objectives objectives;
  std::vector<double> penalty;
  Options options;

  std::int64_t asked = 0;
  std::int64_t batches = 0;
  std::int64_t trained = 0;
  std::int64_t reused = 0;
  std::map<std::string, Evaluation> known{};  ///< by id: everything this run has asked for
  std::map<std::string, std::vector<std::string>> asks{};  ///< ids by candidate, in ask order
  std::vector<Evaluation> history{};                       ///< of finished batches, in ask order
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

  /// The id that answers an ask, and the task behind it where it may be new.
  std::string assign(const std::string& candidate, std::vector<Task>& tasks) {
    auto& ids = asks[candidate];
    if (options.repeated == Repeated::reuse && !ids.empty()) {
      ids.push_back(ids.front());
      ++reused;
      return ids.front();
    }
    const auto replicate =
        options.repeated == Repeated::reuse ? 0 : static_cast<std::int64_t>(ids.size());
    auto task = make_task(candidate, replicate);
    ids.push_back(task.id);
    tasks.push_back(std::move(task));
    return ids.back();
  }

  void recall_or_measure(std::vector<Task> tasks);
  void measure_all(std::vector<Task> tasks);
  Evaluation measure_one(const Task& task);
  std::vector<double> fitness(const Evaluation& evaluation) const;
  std::vector<double> answer(const std::string& candidate, std::size_t ask) const;
};

/// Tasks that the store knows are recalled; the others are measured.
void Evaluator::State::recall_or_measure(std::vector<Task> tasks) {
  std::vector<Task> unknown;
  for (auto& task : tasks) {
    if (known.contains(task.id)) continue;
    if (auto recorded = store.find(task.id)) {
      known.emplace(task.id, std::move(*recorded));
      ++reused;
    } else {
      unknown.push_back(std::move(task));
    }
  }
  if (!unknown.empty()) measure_all(std::move(unknown));
}

Evaluation Evaluator::State::measure_one(const Task& task) {
  Evaluation evaluation;
  evaluation.id = task.id;
  evaluation.candidate = task.candidate;
  evaluation.replicate = task.replicate;
  evaluation.identity = task.identity;
  evaluation.measured = {{"started", utc_now()}, {"pid", getpid()}, {"host", host_name()}};
  {
    const std::lock_guard lock(progress_mutex);
    report(Progress::Kind::evaluation_started, &evaluation);
  }
  const auto fail = [&evaluation](Status status, const char* reason) {
    evaluation.status = status;
    evaluation.reason = reason;
  };
  try {
    measurement->measure(task, evaluation);
  } catch (const StopRequested&) {
    throw;
  } catch (const MemoryLimitExceeded& error) {
    fail(Status::out_of_memory, error.what());
  } catch (const std::bad_alloc&) {
    fail(Status::out_of_memory, "the system has no memory left");
  } catch (const std::exception& error) {
    fail(Status::failed, error.what());
  }
  return evaluation;
}

/// Measures on a pool of workers, the longest first. Which worker does what changes nothing: a
/// result depends on its task.
void Evaluator::State::measure_all(std::vector<Task> tasks) {
  std::vector<double> costs;
  for (const auto& task : tasks) costs.push_back(measurement->expected_cost(task.candidate));
  std::vector<std::size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&costs](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });

  std::vector<std::unique_ptr<Evaluation>> results(tasks.size());
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stopped{false};
  std::exception_ptr broken;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < order.size() && !stopped; i = next++) {
        if (stop_requested()) throw StopRequested();
        const std::size_t task = order[i];
        auto evaluation = std::make_unique<Evaluation>(measure_one(tasks[task]));
        if (measurement->expensive()) store.add({*evaluation});
        const std::lock_guard lock(progress_mutex);
        ++trained;
        results[task] = std::move(evaluation);
        report(Progress::Kind::evaluation_finished, results[task].get());
      }
    } catch (const StopRequested&) {
      stopped = true;
    } catch (...) {  // the store or a display is broken: no worker may go on
      const std::lock_guard lock(progress_mutex);
      broken = std::current_exception();
      stopped = true;
    }
  };
  // Always on threads of their own: a worker sets its thread's number of OpenMP threads.
  std::vector<std::thread> workers;
  const auto count =
      std::min<std::size_t>(static_cast<std::size_t>(std::max(1, options.workers)), tasks.size());
  for (std::size_t i = 0; i < count; ++i) workers.emplace_back(work);
  for (auto& worker : workers) worker.join();

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

std::vector<double> Evaluator::State::fitness(const Evaluation& evaluation) const {
  if (!is_usable(evaluation)) return penalty;
  auto values = objectives(evaluation);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] < penalty[i])) values[i] = penalty[i];  // NaN too
  }
  return values;
}

/// Fitness of the ask-th ask (0, 1, ...) for a candidate, under the policy for repeated asks.
std::vector<double> Evaluator::State::answer(const std::string& candidate, std::size_t ask) const {
  const auto& ids = asks.at(candidate);
  if (options.repeated != Repeated::replicate) return fitness(known.at(ids[ask]));
  std::vector<std::vector<double>> rows;
  for (std::size_t i = 0; i <= ask; ++i) {
    const auto& evaluation = known.at(ids[i]);
    if (is_usable(evaluation)) rows.push_back(fitness(evaluation));
  }
  return rows.empty() ? penalty : mean(rows);
}

Evaluator::Evaluator(std::shared_ptr<Measurement> measurement, Store& store, Objectives objectives,
                     std::vector<double> penalty, Options options)
    : state_(new State{.measurement = std::move(measurement),
                       .store = store,
                       .objectives = std::move(objectives),
                       .penalty = std::move(penalty),
                       .options = std::move(options)}) {}

Evaluator::~Evaluator() = default;

std::vector<std::vector<double>> Evaluator::ask(const std::vector<Genotype>& batch) {
  auto& state = *state_;
  if (stop_requested()) throw StopRequested();
  state.measurement->begin_batch(state.history);
  struct Pending {
    std::string candidate;
    std::size_t ask;
    bool reused;
  };
  std::vector<Pending> pending;
  std::vector<Task> tasks;
  for (const auto& genotype : batch) {
    const auto candidate = state.measurement->canonical(genotype);
    const bool asked_before = state.asks.contains(candidate);
    state.assign(candidate, tasks);
    pending.push_back({candidate, state.asks.at(candidate).size() - 1,
                       asked_before && state.options.repeated == Repeated::reuse});
  }
  const std::int64_t first = state.asked;
  state.asked += static_cast<std::int64_t>(batch.size());
  {
    const std::lock_guard lock(state.progress_mutex);
    state.report(Progress::Kind::batch_started);
  }
  state.recall_or_measure(std::move(tasks));

  std::vector<std::vector<double>> answers;
  std::vector<Ask> record;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& [candidate, ask, reused] = pending[i];
    const auto& id = state.asks.at(candidate)[ask];
    answers.push_back(state.answer(candidate, ask));
    record.push_back({.number = first + static_cast<std::int64_t>(i),
                      .batch = state.batches,
                      .genotype = to_text(batch[i]),
                      .evaluation = id,
                      .reused = reused,
                      .fitness = answers.back()});
    state.history.push_back(state.known.at(id));
  }
  state.store.add_asks(record);
  const std::lock_guard lock(state.progress_mutex);
  state.report(Progress::Kind::batch_finished);
  ++state.batches;
  return answers;
}

Evaluation Evaluator::evaluate(const std::string& candidate, std::int64_t replicate) {
  auto& state = *state_;
  auto task = state.make_task(candidate, replicate);
  const auto id = task.id;
  state.recall_or_measure({std::move(task)});
  return state.known.at(id);
}

std::int64_t Evaluator::num_asked() const { return state_->asked; }
std::size_t Evaluator::num_objectives() const { return state_->penalty.size(); }

}  // namespace nas
