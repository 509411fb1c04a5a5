#include "evaluation/recording_evaluator.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include <unistd.h>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/host.hpp"
#include "core/stop.hpp"
#include "evaluation/worker_pool.hpp"

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
  std::vector<Racer> racers{};               ///< all candidates, in order of their first ask
  std::map<std::string, std::size_t> racer_by_candidate{};
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

  [[nodiscard]] bool over_train_seconds() const {
    return !options.budget.used_up_by(train_seconds).empty();
  }

  /// Evaluations that the budget has left.
  [[nodiscard]] std::size_t room() const {
    if (options.budget.evaluations == 0) return std::numeric_limits<std::size_t>::max();
    const auto most = static_cast<std::size_t>(options.budget.evaluations);
    return most - std::min(most, charged.size());
  }
  void spend_evaluations() { spent = std::to_string(options.budget.evaluations) + " evaluations"; }

  struct Pending;
  std::vector<Pending> assign(const std::vector<Genotype>& batch, std::vector<Task>& tasks);
  void race(std::vector<Pending>& batch);
  void run_round(const std::vector<std::size_t>& round);
  std::size_t enter(const std::string& candidate);
  [[nodiscard]] bool there(const std::string& id) const { return known.contains(id); }
  [[nodiscard]] Answer answer(const std::string& candidate, const std::vector<std::string>& ids,
                              std::int64_t earlier_asks) const;
  void recall_or_measure(std::vector<Task> tasks);
  void measure_all(const std::vector<Task>& tasks);
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
  std::int64_t newcomers = 0;
  for (const auto& genotype : batch) {
    const auto candidate = measurement->canonical(genotype);
    auto& ids = replicates[candidate];
    const auto answering = answering_replicates(options.repeated, options.replicates,
                                                static_cast<std::int64_t>(ids.size()));
    if (answering.num_fresh() > 0) ++newcomers;
    // A race is to put every newcomer's first score to the test at least once.
    const auto kept = options.racing ? newcomers : 0;
    spent = options.budget.exceeded_by(
        asked + static_cast<std::int64_t>(pending.size()) + 1,
        static_cast<std::int64_t>(charged.size()) + answering.num_fresh() + kept);
    if (!spent.empty()) break;
    for (auto replicate = answering.known; replicate < answering.end; ++replicate) {
      auto task = make_task(*measurement, candidate, replicate);
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
  if (!unknown.empty()) measure_all(unknown);
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

}  // namespace

/// Screens one task after the other, then measures the remaining ones, the longest first. What was
/// screened out or measured is known afterwards, and stored.
void RecordingEvaluator::State::measure_all(const std::vector<Task>& tasks) {
  std::vector<Evaluation> evaluations(tasks.size());
  std::set<const Evaluation*> finished;
  const auto begin = [this](std::span<const Assignment> array) {
    const std::lock_guard lock(progress_mutex);
    if (over_train_seconds()) return false;
    for (const auto& member : array) {
      report(Progress::Kind::evaluation_started, &member.evaluation);
    }
    return true;
  };
  const auto finish = [&](std::span<const Assignment> array) {
    if (measurement->expensive()) {
      std::vector<Evaluation> results;
      for (const auto& member : array) results.push_back(member.evaluation);
      store.add(results);
    }
    const std::lock_guard lock(progress_mutex);
    for (const auto& member : array) {
      finished.insert(&member.evaluation);
      ++trained;
      charge(member.evaluation);
      report(Progress::Kind::evaluation_finished, &member.evaluation);
    }
  };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (stop_requested()) throw StopRequested();
    auto& evaluation = evaluations[i] = begun(tasks[i]);
    evaluation.status = Status::ok;
    guarded(evaluation, [&] { measurement->screen(tasks[i], evaluation); });
    if (evaluation.status == Status::ok) {
      evaluation.status = Status::failed;  // until measured
      order.push_back(i);
    } else {
      finish(std::array{Assignment{tasks[i], evaluation}});
    }
  }
  std::vector<double> costs;
  for (const auto& task : tasks) costs.push_back(measurement->expected_cost(task.candidate));
  std::stable_sort(order.begin(), order.end(),
                   [&costs](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  std::vector<Assignment> assignments;
  for (const auto i : order) assignments.push_back({tasks[i], evaluations[i]});
  const auto ended_by = measure_on_workers(*measurement, assignments, options.workers,
                                           {.begin = begin, .finish = finish});

  std::vector<Evaluation> cheap;
  for (auto& evaluation : evaluations) {
    if (!finished.contains(&evaluation)) continue;
    if (!measurement->expensive()) cheap.push_back(evaluation);
    known.emplace(evaluation.id, std::move(evaluation));
  }
  if (!cheap.empty()) store.add(cheap);
  if (ended_by) std::rethrow_exception(ended_by);
}

/// Gives further replicates, round by round, to whom they may help to tell who is best.
void RecordingEvaluator::State::race(std::vector<Pending>& batch) {
  std::vector<std::size_t> entrants;
  for (const auto& ask : batch) entrants.push_back(enter(ask.candidate));
  while (!over_train_seconds()) {
    auto round = undecided(racers, entrants, *options.racing);
    if (round.size() > room()) {
      spend_evaluations();
      round.resize(room());
    }
    if (round.empty()) break;
    run_round(round);
  }
  for (auto& ask : batch) ask.ids = replicates.at(ask.candidate);
}

/// One further replicate each, the next one, so that what two candidates share makes pairs.
void RecordingEvaluator::State::run_round(const std::vector<std::size_t>& round) {
  std::vector<Task> tasks;
  for (const auto i : round) {
    auto& ids = replicates.at(racers[i].candidate);
    tasks.push_back(
        make_task(*measurement, racers[i].candidate, static_cast<std::int64_t>(ids.size())));
    ids.push_back(tasks.back().id);
    charged.insert(tasks.back().id);
  }
  recall_or_measure(std::move(tasks));
  for (const auto i : round) {
    auto& ids = replicates.at(racers[i].candidate);
    if (!there(ids.back())) {  // the device's time is spent
      charged.erase(ids.back());
      ids.pop_back();
    }
    enter(racers[i].candidate);
  }
}

/// Tells the race of a candidate's replicates. @return its position among the racers.
std::size_t RecordingEvaluator::State::enter(const std::string& candidate) {
  const auto [found, fresh] = racer_by_candidate.try_emplace(candidate, racers.size());
  if (fresh) racers.push_back({.candidate = candidate});
  auto& racer = racers[found->second];
  const auto& ids = replicates.at(candidate);
  for (auto i = racer.replicates.size(); i < ids.size(); ++i) {
    racer.replicates.push_back(is_usable(known.at(ids[i])) ? fitness({ids[i]}) : Point());
  }
  const auto present = answer(candidate, ids, 0);
  racer.mean = present.usable ? present.fitness : Point();
  return found->second;
}

Answer RecordingEvaluator::State::answer(const std::string& candidate,
                                         const std::vector<std::string>& ids,
                                         std::int64_t earlier_asks) const {
  const bool usable = std::any_of(
      ids.begin(), ids.end(), [this](const std::string& id) { return is_usable(known.at(id)); });
  return {.candidate = candidate,
          .fitness = fitness(ids),
          .usable = usable,
          .earlier_asks = earlier_asks};
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
  auto pending = state.assign(batch, tasks);
  const std::int64_t first = state.asked;
  state.asked += static_cast<std::int64_t>(pending.size());
  {
    const std::lock_guard lock(state.progress_mutex);
    state.report(Progress::Kind::batch_started);
  }
  state.recall_or_measure(std::move(tasks));
  // Where the device's time ended, the asks before the first incomplete one are answered.
  const auto there = [&state](const std::string& id) { return state.there(id); };
  if (state.over_train_seconds()) {
    std::erase_if(state.charged, [&there](const std::string& id) { return !there(id); });
  }
  pending.erase(std::find_if_not(pending.begin(), pending.end(),
                                 [&there](const auto& ask) {
                                   return std::all_of(ask.ids.begin(), ask.ids.end(), there);
                                 }),
                pending.end());
  if (state.options.racing) state.race(pending);

  std::vector<Answer> answers;
  std::vector<Ask> record;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const auto& ask = pending[i];
    answers.push_back(state.answer(ask.candidate, ask.ids, ask.earlier_asks));
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
  std::vector<Task> tasks;
  const auto& options = state_->options;
  const auto count = options.racing ? options.racing->replicates : options.replicates;
  for (std::int64_t replicate = 0; replicate < count; ++replicate) {
    tasks.push_back(make_task(*state_->measurement, candidate, replicate));
  }
  return evaluate(tasks);
}

std::vector<Evaluation> RecordingEvaluator::evaluate(const std::vector<Task>& tasks) {
  auto& state = *state_;
  state.recall_or_measure(tasks);
  std::vector<Evaluation> evaluations;
  for (const auto& task : tasks) evaluations.push_back(state.known.at(task.id));
  return evaluations;
}

std::int64_t RecordingEvaluator::num_asked() const { return state_->asked; }
std::int64_t RecordingEvaluator::num_evaluated() const {
  return static_cast<std::int64_t>(state_->charged.size());
}
std::int64_t RecordingEvaluator::num_batches() const { return state_->batches; }
std::string RecordingEvaluator::spent() const { return state_->spent; }

}  // namespace nas
