#include "evaluation/recording_evaluator.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <new>
#include <set>
#include <stdexcept>
#include <utility>

#include <unistd.h>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/hash.hpp"
#include "core/host.hpp"
#include "core/stop.hpp"
#include "evaluation/at_work.hpp"
#include "evaluation/failures.hpp"
#include "evaluation/ledger.hpp"
#include "evaluation/local_executor.hpp"
#include "evaluation/outcomes.hpp"
#include "evaluation/virtual_order.hpp"

namespace nas {

namespace {

/// A genotype as text, gene by gene: for lineage and reports.
std::string to_text(const Genotype& genotype) {
  std::vector<std::string> fields;
  for (const auto& [name, value] : genotype.values()) {
    const auto* option = std::get_if<std::string>(&value);
    fields.push_back(option != nullptr ? *option : shortest(std::get<double>(value)));
  }
  return join(fields, "|");
}

/// Under what the answer to a task is known: its id where it is measured to the end.
std::string question_of(const std::string& id, std::int64_t until) {
  return until == 0 ? id : id + " until " + std::to_string(until);
}
std::string question_of(const Task& task) { return question_of(task.id, task.until); }

/// A candidate's name, or for long ones, of which a search may have very many, its SHA-256.
std::string key_of(const std::string& name) {
  constexpr std::size_t kShort = 64;
  return name.size() <= kShort ? name : sha256(name);
}

/// Steps of training that an evaluation has taken, as far as its curve shows.
std::int64_t steps_of(const Evaluation& evaluation) {
  return evaluation.curve.empty() ? 0 : evaluation.curve.back().step;
}

}  // namespace

struct RecordingEvaluator::State {
  std::shared_ptr<Measurement> measurement;
  Store& store;
  Judge judge;
  Options options;

  std::int64_t batches = 0;
  std::int64_t trained = 0;
  std::int64_t rejected = 0;  ///< evaluations screened out
  std::int64_t reused = 0;
  /// By question_of(): everything this run has asked for, but for cheap evaluations that forget()
  /// has left to the store.
  std::map<std::string, Evaluation> known{};
  std::size_t num_kept = 0;                      ///< of these when some were forgotten last
  std::map<std::string, Evaluation> screened{};  ///< by id: what may be trained next
  struct Found {
    Evaluation evaluation;
    bool elsewhere = false;  ///< and not in the store
  };
  std::map<std::string, Found> looked_up{};  ///< by id, for whoever asks next
  /// A candidate and what this run has asked of it.
  struct AskedFor {
    std::shared_ptr<const Candidate> candidate{};  ///< where races may train it further
    std::vector<std::string> ids{};                ///< of its replicates
    Ledger::Account account{};
  };
  std::map<std::string, AskedFor> asked_for{};  ///< by key_of() its name
  Ledger ledger{{.repeated = options.repeated,
                 .replicates = options.replicates,
                 .budget = options.budget,
                 .steps = measurement->steps(),
                 .racing = options.racing.has_value()}};
  bool charging = false;  ///< whether what is evaluated is charged when it is there
  std::vector<const Evaluation*> history{};  ///< of finished batches, in ask order; expensive ones
  std::vector<Racer> racers{};               ///< all candidates, in order of their first ask
  std::map<std::string, std::size_t> racer_by_candidate{};
  /// An ask whose evaluations are decided, but perhaps not there yet.
  struct Pending {
    std::int64_t number;
    std::int64_t batch;
    std::string genotype;
    std::string candidate;
    std::vector<std::string> ids;
    bool reused;
    std::int64_t earlier_asks;
    std::vector<std::string> booked{};  ///< ids of the evaluations that it is charged
    std::int64_t place = 0;             ///< among those that have begun one by one
    std::int64_t until = 0;             ///< where its only evaluation pauses
    bool goes_on = false;               ///< from where it was paused
    std::int64_t steps = 0;             ///< of training that each evaluation is charged

    /// Under what its evaluations are known.
    [[nodiscard]] std::vector<std::string> questions() const {
      auto keys = ids;
      for (auto& id : keys) id = question_of(id, until);
      return keys;
    }
  };
  std::vector<Pending> pending{};  ///< asks of the batch that is being answered
  std::int64_t batch_size = 0;     ///< candidates of that batch
  std::set<std::int64_t> shown{};  ///< their numbers, as far as previews of them are recorded
  FirstOutcomes first_outcomes{};
  LatestOutcomes latest_outcomes{static_cast<std::size_t>(options.failure_window)};
  std::shared_ptr<Executor> executor =
      options.executor ? options.executor
                       : std::make_shared<LocalExecutor>(*measurement, options.workers);
  std::map<std::string, Evaluation> out{};     ///< what is being measured, by id
  std::map<std::string, Task> tasks_out{};     ///< what each of these is measured for, by id
  std::map<std::int64_t, Pending> asks_out{};  ///< begun one by one and not told, by number
  std::int64_t num_begun = 0;                  ///< asks, one by one
  bool beyond_budget = false;  ///< whether asks come now that are made whatever the budget says
  /// What of an evaluation that was begun so is charged to the budget.
  struct Charged {
    bool paused = false;
    std::int64_t steps = 0;
    double seconds = 0.0;
  };
  std::map<std::string, Charged> charged{};  ///< by id
  VirtualOrder virtual_order{};
  /// Numbers of asks in the order in which they are told as they arrive, what is recorded first.
  std::optional<std::vector<std::int64_t>> tells{};
  std::size_t told = 0;  ///< of these
  AtWork at_work{store, options.stage, executor->workers()};

  void report(Progress::Kind kind, const Evaluation* evaluation = nullptr,
              const Evaluation* last = nullptr, const Advance& advance = {}) {
    if (!options.on_progress) return;
    options.on_progress(
        {.kind = kind,
         .batch = batches,
         .asked =
             ledger.asked() - (kind == Progress::Kind::batch_finished ? std::ssize(asks_out) : 0),
         .trained = trained,
         .rejected = rejected,
         .reused = reused,
         .evaluation = evaluation,
         .screening = static_cast<std::int64_t>(pending.size()) + 1,
         .batch_size = batch_size,
         .last = last,
         .advance = advance,
         .seconds_left = ledger.seconds_left()});
  }

  std::vector<Task> assign(const std::vector<Genotype>& batch);
  std::optional<Pending> assign(const Genotype& genotype, std::vector<Task>& tasks,
                                std::int64_t until = 0, bool anyway = false);
  void race();
  void preview();
  void record_asking();
  [[nodiscard]] std::vector<const Evaluation*> measured(const std::vector<std::string>& ids) const;
  [[nodiscard]] bool is_answered(const Pending& ask) const;
  [[nodiscard]] Ask record(const Pending& ask, std::vector<double> fitness) const;
  void run_round(const std::vector<std::size_t>& round);
  std::size_t enter(const std::string& candidate);
  const Evaluation& screen(const Task& task);
  [[nodiscard]] bool is_rejected(const Candidate& candidate);
  [[nodiscard]] bool there(const std::string& id) const { return known.contains(id); }
  /// Makes an evaluation known: an expensive one without its identity, which is several times as
  /// large as the rest, and which the task has that asks for it.
  const Evaluation& keep(const std::string& question, Evaluation evaluation) {
    if (measurement->expensive()) evaluation.identity = nullptr;
    return known.emplace(question, std::move(evaluation)).first->second;
  }
  const Evaluation& evaluation_of(const std::string& question);
  void remember(const Pending& ask);
  void forget();
  void recall_forgotten(const Pending& ask, std::int64_t answered);
  [[nodiscard]] Answer answer(const Pending& ask);
  [[nodiscard]] std::optional<Found> look_up(const std::string& id);
  [[nodiscard]] std::optional<Evaluation> find_recorded(const std::string& id);
  [[nodiscard]] std::optional<Evaluation> find_paused(const Task& task);
  void keep_part(Evaluation& evaluation) const;
  [[nodiscard]] std::optional<Evaluation> find_answer(const Task& task);
  bool recall(const Task& task);
  void recall_or_measure(std::vector<Task> tasks);
  void measure_all(const std::vector<Task>& tasks);
  void submit(const Task& task);
  bool hear();
  std::int64_t wait_for_arrival();
  void record_tell(const Ask& ask, TellOrder order);
  [[noreturn]] void stop();
  void screen_out(Evaluation evaluation, const std::string& question);
  void handle(Executor::Event event);
  void record(std::vector<Evaluation> evaluations);
  bool try_again(const Evaluation& result);
  void watch_failures(std::span<const Evaluation> results);
  void require_judgeable(const std::vector<Evaluation>& results) const;
  void commit(std::vector<Evaluation> results);
  void charge(const Evaluation& evaluation);
  void charge(const Pending& ask);
  void take_back_steps(const std::string& id);
  [[nodiscard]] Judgement judged(const std::vector<std::string>& questions);
};

/// Decides which evaluations answer a batch, as far as the budget goes.
/// @return those that this run has not asked for before.
std::vector<Task> RecordingEvaluator::State::assign(const std::vector<Genotype>& batch) {
  std::vector<Task> tasks;
  pending.clear();
  shown.clear();
  batch_size = static_cast<std::int64_t>(batch.size());
  ledger.begin_batch();
  for (const auto& genotype : batch) {
    auto ask = assign(genotype, tasks);
    if (!ask) break;
    pending.push_back(std::move(*ask));
  }
  return tasks;
}

/// The same of one candidate. @param tasks  receives those that this run has not asked for before.
/// @return nothing where the budget ends the search.
auto RecordingEvaluator::State::assign(const Genotype& genotype, std::vector<Task>& tasks,
                                       std::int64_t until, bool anyway) -> std::optional<Pending> {
  const auto candidate = measurement->canonical(genotype);
  auto& [known_candidate, ids, account] = asked_for[key_of(candidate.name)];
  if (options.racing && !known_candidate) {
    known_candidate = std::make_shared<const Candidate>(candidate);
  }
  const bool untrained = is_rejected(candidate);
  auto steps = until > 0 ? until : measurement->steps();
  std::optional<Replicates> answering;
  const auto before = ids.empty() ? charged.end() : charged.find(ids.front());
  const bool goes_on =
      before != charged.end() && before->second.paused && before->second.steps < steps;
  if (!goes_on) {
    answering = ledger.ask(account, untrained, until);
  } else if (ledger.go_on(steps -= before->second.steps, anyway)) {
    answering = Replicates{.first = 0, .known = 1, .end = 1};
  }
  if (!answering) return std::nullopt;
  Pending ask{.number = ledger.asked() - 1,
              .batch = batches,
              .genotype = to_text(genotype),
              .candidate = candidate.name,
              .ids = {},
              .reused = !goes_on && answering->num_fresh() == 0,
              .earlier_asks = account.asks++,
              .until = until,
              .goes_on = goes_on,
              .steps = steps};
  for (auto replicate = answering->known; replicate < answering->end; ++replicate) {
    auto task = make_task(*measurement, candidate, replicate);
    ids.push_back(task.id);
    if (!untrained) ask.booked.push_back(task.id);
    tasks.push_back(std::move(task));
  }
  if (goes_on) tasks.push_back(make_task(*measurement, candidate, 0));
  for (auto& task : tasks) task.until = until;
  ask.ids = {ids.begin() + static_cast<std::ptrdiff_t>(answering->first),
             ids.begin() + static_cast<std::ptrdiff_t>(answering->end)};
  if (!goes_on) recall_forgotten(ask, answering->known - answering->first);
  if (ask.reused) ++reused;
  return ask;
}

bool RecordingEvaluator::State::is_answered(const Pending& ask) const {
  return std::all_of(ask.ids.begin(), ask.ids.end(),
                     [this, &ask](const auto& id) { return there(question_of(id, ask.until)); });
}

Ask RecordingEvaluator::State::record(const Pending& ask, std::vector<double> fitness) const {
  return {.number = ask.number,
          .batch = ask.batch,
          .genotype = ask.genotype,
          .evaluations = ask.ids,
          .reused = ask.reused,
          .fitness = std::move(fitness),
          .until = ask.until};
}

/// Records the asks of the batch whose evaluations are all there, so that who reads the store while
/// the others are measured sees them. Races may still change their answers.
void RecordingEvaluator::State::preview() {
  if (!measurement->expensive()) return;
  std::vector<Ask> asks;
  for (const auto& ask : pending) {
    if (!shown.contains(ask.number) && is_answered(ask)) {
      asks.push_back(record(ask, judged(ask.ids).fitness));
    }
  }
  if (asks.empty()) return;
  store.preview_asks(asks);
  for (const auto& ask : asks) shown.insert(ask.number);
}

/// Records the asks of the batch, or those that are out, that nothing answers yet. They are no asks
/// of the record: what answers them may be withdrawn, and a process that continues asks again.
void RecordingEvaluator::State::record_asking() {
  if (!measurement->expensive()) return;
  auto asks = nlohmann::json::array();
  const auto add = [&](const Pending& ask) {
    if (is_answered(ask)) return;
    asks.push_back({{"number", ask.number},
                    {"genotype", ask.genotype},
                    {"candidate", ask.candidate},
                    {"evaluations", ask.ids}});
  };
  for (const auto& ask : pending) add(ask);
  for (const auto& [number, ask] : asks_out) add(ask);
  at_work.asked(batches, std::move(asks));
}

std::vector<const Evaluation*> RecordingEvaluator::State::measured(
    const std::vector<std::string>& ids) const {
  std::vector<const Evaluation*> evaluations;
  for (const auto& id : ids) evaluations.push_back(&out.at(id));
  return evaluations;
}

void RecordingEvaluator::State::charge(const Evaluation& evaluation) {
  ledger.charge(spent_seconds(evaluation));
}

/// Charges what the evaluations of an ask that was begun by itself have taken since they were told
/// last, in place of the steps that were booked.
void RecordingEvaluator::State::charge(const Pending& ask) {
  // Which part of a training run its failed tries belong to is not recorded.
  const bool whole = ask.until == 0 && !ask.goes_on;
  for (const auto& id : ask.goes_on ? ask.ids : ask.booked) {
    const auto& evaluation = known.at(question_of(id, ask.until));
    auto& before = charged[id];
    const Charged now{.paused = evaluation.status == Status::paused,
                      .steps = steps_of(evaluation),
                      .seconds = whole ? spent_seconds(evaluation)
                                       : evaluation.measured.value("train_seconds", 0.0)};
    ledger.charge(now.seconds - before.seconds);
    ledger.take_back_steps(ask.steps - (now.steps - before.steps));
    before = now;
  }
}

/// What the store has of an id; else what was made elsewhere.
auto RecordingEvaluator::State::look_up(const std::string& id) -> std::optional<Found> {
  if (auto kept = looked_up.extract(id)) return std::move(kept.mapped());
  if (auto stored = store.find(id)) return Found{.evaluation = std::move(*stored)};
  if (!options.recall) return std::nullopt;
  auto recalled = options.recall(id);
  if (!recalled) return std::nullopt;
  return Found{.evaluation = std::move(*recalled), .elsewhere = true};
}

/// The same, which the store then has.
std::optional<Evaluation> RecordingEvaluator::State::find_recorded(const std::string& id) {
  auto found = look_up(id);
  if (!found) return std::nullopt;
  if (found->elsewhere) store.add({found->evaluation});
  return std::move(found->evaluation);
}

/// The same of a training run that pauses: the store then has of one that was made elsewhere what it
/// would have of its own.
std::optional<Evaluation> RecordingEvaluator::State::find_paused(const Task& task) {
  auto found = look_up(task.id);
  if (!found) return store.find_partial(task.id);
  if (found->elsewhere) {
    auto part = found->evaluation;
    measurement->end_at(part, task.until);
    require_finite_values(part);
    record({std::move(part)});
  }
  return std::move(found->evaluation);
}

/// Leaves to a training run that fails what it had come to before, which the store has as a part:
/// asks were answered by that, and are again where the search is repeated.
void RecordingEvaluator::State::keep_part(Evaluation& evaluation) const {
  if (is_usable(evaluation) || !measurement->expensive()) return;
  const auto part = store.find_partial(evaluation.id);
  if (!part || steps_of(*part) <= steps_of(evaluation)) return;
  evaluation.curve = part->curve;
  for (const auto* taken : {"train_seconds", "cpu_seconds"}) {
    if (part->measured.contains(taken)) evaluation.measured[taken] = part->measured.at(taken);
  }
}

/// What the store says of a task: its evaluation, or a part of it that is long enough. A rung of what
/// costs little is measured again, which needs no checkpoint.
std::optional<Evaluation> RecordingEvaluator::State::find_answer(const Task& task) {
  if (task.until > 0 && !measurement->expensive()) return std::nullopt;
  auto found = task.until > 0 ? find_paused(task) : find_recorded(task.id);
  if (!found || !answers(*found, task.until)) return std::nullopt;
  first_outcomes.recall(*found);
  if (measurement->expensive()) measurement->recorded(*found);
  if (task.until > 0) {
    measurement->end_at(*found, task.until);
    require_finite_values(*found);
  }
  return found;
}

/// Whether there is an answer to a task: known, or recalled from the store.
bool RecordingEvaluator::State::recall(const Task& task) {
  if (there(question_of(task))) return true;
  auto recorded = find_answer(task);
  if (!recorded) return false;
  keep(question_of(task), std::move(*recorded));
  ++reused;
  return true;
}

/// Of what was booked for an evaluation, the steps that it did not take.
void RecordingEvaluator::State::take_back_steps(const std::string& id) {
  ledger.take_back_steps(measurement->steps() - steps_of(known.at(id)));
}

/// Tasks that the store knows are recalled; the others are measured.
void RecordingEvaluator::State::recall_or_measure(std::vector<Task> tasks) {
  std::vector<Task> unknown;
  for (auto& task : tasks) {
    if (!recall(task)) {
      unknown.push_back(std::move(task));
    } else if (charging) {
      charge(known.at(question_of(task)));
    }
  }
  if (unknown.empty()) return;
  preview();
  if (!pending.empty()) record_asking();
  if (options.on_measuring) options.on_measuring(pending.empty() ? -1 : pending.front().number);
  measure_all(unknown);
}

namespace {

/// An evaluation of which everything is known that is known beforehand.
/// @param expensive  where it is not, the session in which it is made says when and where.
Evaluation begun(const Task& task, bool expensive) {
  auto evaluation = unmeasured(task);
  if (expensive) {
    evaluation.measured = {{"started", utc_now()}, {"pid", getpid()}, {"host", host_name()}};
  }
  return evaluation;
}

}  // namespace

/// What is known of a task before it is measured; ok: it can be. Nothing else is at work while a
/// task is screened: what memory did not suffice for is tried again at once.
const Evaluation& RecordingEvaluator::State::screen(const Task& task) {
  const auto found = screened.find(task.id);
  if (found != screened.end()) return found->second;
  if (stop_requested()) throw StopRequested();
  auto evaluation = begun(task, measurement->expensive());
  evaluation.status = Status::ok;
  const Evaluation before = evaluation;
  const auto work = [&] { nas::screen(*measurement, task, evaluation); };
  try {
    record_failure(evaluation, work);
  } catch (const std::bad_alloc&) {
    evaluation = before;
    record_lone_failure(evaluation, work);
  }
  return screened.emplace(task.id, std::move(evaluation)).first->second;
}

/// Whether a candidate is rejected before it is trained. The first replicate tells, as it is
/// recorded or else by screening it.
bool RecordingEvaluator::State::is_rejected(const Candidate& candidate) {
  const auto earlier = asked_for.find(key_of(candidate.name));
  const bool first = earlier == asked_for.end() || earlier->second.ids.empty();
  const auto task = first ? make_task(*measurement, candidate, 0) : Task{};
  // Under the identity that it has had since then: that of a later batch may differ.
  const auto& id = first ? task.id : earlier->second.ids.front();
  for (const auto* evaluations : {&known, &screened}) {
    const auto found = evaluations->find(id);
    if (found != evaluations->end()) return is_screened_out(found->second);
  }
  // Not stored yet: the budget may have nothing left for this ask.
  if (auto found = look_up(id)) {
    return is_screened_out(
        looked_up.insert_or_assign(id, std::move(*found)).first->second.evaluation);
  }
  if (!first) return false;
  report(Progress::Kind::candidate_screening);
  return is_screened_out(screen(task));
}

/// Screens one task after the other, then measures the remaining ones, the longest first. What was
/// screened out or measured is known afterwards, and stored.
void RecordingEvaluator::State::measure_all(const std::vector<Task>& tasks) {
  std::vector<double> costs(tasks.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (stop_requested()) throw StopRequested();
    const auto& evaluation = screen(tasks[i]);
    if (evaluation.status != Status::ok) {
      screen_out(evaluation, question_of(tasks[i]));
      continue;
    }
    order.push_back(i);
    costs[i] = measurement->expected_cost(tasks[i].candidate);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&costs](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  out.clear();
  tasks_out.clear();
  std::exception_ptr ended_by;
  try {
    if (!ledger.out_of_time()) {
      for (const auto i : order) submit(tasks[i]);
    }
    screened.clear();
    while (hear()) {
    }
  } catch (...) {
    ended_by = std::current_exception();
  }
  if (!measurement->expensive()) {
    std::vector<Evaluation> results;
    for (const auto& task : tasks) {
      if (const auto found = known.find(question_of(task)); found != known.end()) {
        results.push_back(found->second);
      }
    }
    record(results);
  }
  if (ended_by) std::rethrow_exception(ended_by);
}

/// Has a task measured that was screened.
void RecordingEvaluator::State::submit(const Task& task) {
  auto& evaluation = out.insert_or_assign(task.id, std::move(screened.at(task.id))).first->second;
  evaluation.status = Status::failed;  // until measured
  tasks_out.insert_or_assign(task.id, task);
  executor->submit(task, evaluation);
  at_work.submitted(1);
}

/// Waits for what happens next. @return whether something did: nothing does once no task is out.
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
  keep_part(evaluation);
  if (measurement->expensive() || !asks_out.empty()) store.add({evaluation});
  if (measurement->expensive()) measurement->recorded(evaluation);  // it may have begun before
  keep(question, evaluation);
  if (is_screened_out(evaluation)) ++rejected;
  report(Progress::Kind::evaluation_screened_out, &evaluation);
  preview();
  watch_failures({&evaluation, 1});
}

void RecordingEvaluator::State::watch_failures(std::span<const Evaluation> results) {
  if (!measurement->expensive()) return;
  first_outcomes.finish(results);
  latest_outcomes.finish(results);
}

/// Has a task measured once more, from its beginning, where that may come to something else.
bool RecordingEvaluator::State::try_again(const Evaluation& result) {
  const auto most = options.retries.of(result.status);
  if (most == 0 || ledger.out_of_time()) return false;
  auto& evaluation = out.at(result.id);
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
  executor->submit(tasks_out.at(result.id), evaluation);
  at_work.finished({result});
  at_work.submitted(1);
  return true;
}

void RecordingEvaluator::State::handle(Executor::Event event) {
  switch (event.kind) {
    case Executor::Event::Kind::started:
      first_outcomes.begin(event.ids);
      if (measurement->expensive()) at_work.started(measured(event.ids));
      for (const auto& id : event.ids) report(Progress::Kind::evaluation_started, &out.at(id));
      break;
    case Executor::Event::Kind::advanced:
      // Of what has finished elsewhere nothing more is told.
      if (!std::all_of(event.ids.begin(), event.ids.end(),
                       [this](const auto& id) { return out.contains(id); })) {
        break;
      }
      at_work.advanced(measured(event.ids), event.advance);
      report(Progress::Kind::evaluation_advanced, &out.at(event.ids.front()),
             &out.at(event.ids.back()), event.advance);
      break;
    case Executor::Event::Kind::finished:
      commit(std::move(event.evaluations));
      // What is out one by one is told all the same.
      if (asks_out.empty() && ledger.out_of_time()) {
        executor->withdraw();
        at_work.withdrawn();
      }
      break;
  }
}

/// Commits evaluations, and of those that are paused the part that is known.
void RecordingEvaluator::State::record(std::vector<Evaluation> evaluations) {
  const auto paused =
      std::stable_partition(evaluations.begin(), evaluations.end(),
                            [](const auto& one) { return one.status != Status::paused; });
  store.add_partials({paused, evaluations.end()});
  evaluations.erase(paused, evaluations.end());
  if (!evaluations.empty()) store.add(evaluations);
}

/// Refuses what somebody else has measured and nobody can judge: once it is recorded, every process
/// that continues would end by it. What this process measures is kept: it lacks something by a
/// defect of an objective alone, which can be mended without training again.
/// @throws MachineError naming the evaluation.
void RecordingEvaluator::State::require_judgeable(const std::vector<Evaluation>& results) const {
  const bool searching = charging || !asks_out.empty();
  if (!judge || !options.executor || (!searching && !options.compute)) return;
  for (const auto& evaluation : results) {
    if (!is_usable(evaluation)) continue;
    // As if all replicates had come to the same: objectives may need several.
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(1, options.replicates));
    const std::vector<const Evaluation*> replicates(count, &evaluation);
    try {
      searching ? static_cast<void>(judge(replicates)) : options.compute(replicates);
    } catch (const std::logic_error& error) {
      throw MachineError("evaluation " + evaluation.id + " of " + evaluation.candidate +
                         ", replicate " + std::to_string(evaluation.replicate) + ", is " +
                         std::string(to_string(evaluation.status)) + ", but " + error.what() +
                         "; it is not recorded");
    }
  }
}

/// Stores what was measured together.
void RecordingEvaluator::State::commit(std::vector<Evaluation> results) {
  for (auto& evaluation : results) {
    require_finite_values(evaluation);
    if (measurement->expensive()) fail_before(evaluation, tasks_out.at(evaluation.id).until);
  }
  require_judgeable(results);
  std::erase_if(results, [this](const auto& evaluation) { return try_again(evaluation); });
  if (results.empty()) return;
  for (auto& evaluation : results) keep_part(evaluation);
  // Those of a batch of cheap ones are stored together.
  if (measurement->expensive() || !asks_out.empty()) record(results);
  if (measurement->expensive()) {
    for (const auto& evaluation : results) measurement->recorded(evaluation);
  }
  for (const auto& evaluation : results) {
    keep(question_of(tasks_out.extract(evaluation.id).mapped()), evaluation);
    ++trained;
    if (charging) charge(evaluation);
    report(Progress::Kind::evaluation_finished, &evaluation);
  }
  at_work.finished(results);
  for (const auto& evaluation : results) out.erase(evaluation.id);
  preview();
  watch_failures(results);
}

/// Gives further replicates, round by round, to whom they may help to tell who is best.
void RecordingEvaluator::State::race() {
  std::vector<std::size_t> entrants;
  for (const auto& ask : pending) entrants.push_back(enter(ask.candidate));
  while (!ledger.out_of_time()) {
    auto round = undecided(racers, entrants, *options.racing);
    if (std::ssize(round) > ledger.room()) {
      ledger.end_by_evaluations();
      round.resize(static_cast<std::size_t>(ledger.room()));
    }
    if (round.empty()) break;
    run_round(round);
  }
  for (auto& ask : pending) ask.ids = asked_for.at(key_of(ask.candidate)).ids;
}

/// One further replicate each, the next one, so that what two candidates share makes pairs.
void RecordingEvaluator::State::run_round(const std::vector<std::size_t>& round) {
  std::vector<Task> tasks;
  for (const auto i : round) {
    auto& [candidate, ids, account] = asked_for.at(key_of(racers[i].candidate));
    tasks.push_back(make_task(*measurement, *candidate, static_cast<std::int64_t>(ids.size())));
    ids.push_back(tasks.back().id);
    ++account.replicates;
  }
  ledger.race(std::ssize(round));
  recall_or_measure(std::move(tasks));
  for (const auto i : round) {
    auto& [_, ids, account] = asked_for.at(key_of(racers[i].candidate));
    if (!there(ids.back())) {  // the device's time is spent
      ledger.take_back_evaluations(1);
      --account.replicates;
      ids.pop_back();
    } else {
      take_back_steps(ids.back());
    }
    enter(racers[i].candidate);
  }
}

/// Tells the race of a candidate's replicates. @return its position among the racers.
std::size_t RecordingEvaluator::State::enter(const std::string& candidate) {
  const auto [found, fresh] = racer_by_candidate.try_emplace(candidate, racers.size());
  if (fresh) racers.push_back({.candidate = candidate});
  auto& racer = racers[found->second];
  const auto& ids = asked_for.at(key_of(candidate)).ids;
  for (auto i = racer.replicates.size(); i < ids.size(); ++i) {
    racer.replicates.push_back(judged({ids[i]}).measured);
  }
  const auto present = judged(ids);
  racer.mean = is_usable(present.status) ? present.fitness : Point();
  return found->second;
}

/// What answers a question that was answered before.
const Evaluation& RecordingEvaluator::State::evaluation_of(const std::string& question) {
  const auto found = known.find(question);
  if (found != known.end()) return found->second;
  return keep(question, find_recorded(question).value());
}

/// Keeps what answered an ask for measurements that look at what is known.
void RecordingEvaluator::State::remember(const Pending& ask) {
  if (!measurement->expensive()) return;
  for (const auto& question : ask.questions()) history.push_back(&known.at(question));
}

/// Where evaluations are cheap, there may be millions: leaves those that were measured to their ends
/// to the store, from which they are read again when they are asked for.
void RecordingEvaluator::State::forget() {
  constexpr std::size_t kMost = 4096;
  looked_up.clear();
  if (measurement->expensive() || known.size() <= std::max(kMost, 2 * num_kept)) return;
  std::set<std::string> wanted;
  for (const auto& [number, ask] : asks_out) {
    for (auto& question : ask.questions()) wanted.insert(std::move(question));
  }
  std::erase_if(known, [&wanted](const auto& one) {
    return one.first == one.second.id && !wanted.contains(one.first);
  });
  num_kept = known.size();
}

/// Reads what forget() has left to the store. @param answered  so many evaluations of the ask, the
/// first ones, were asked for before.
void RecordingEvaluator::State::recall_forgotten(const Pending& ask, std::int64_t answered) {
  if (measurement->expensive() || ask.until > 0) return;
  for (std::int64_t i = 0; i < answered; ++i) {
    const auto& id = ask.ids[static_cast<std::size_t>(i)];
    if (there(id) || out.contains(id)) continue;
    if (auto recorded = find_recorded(id)) keep(id, std::move(*recorded));
  }
}

Answer RecordingEvaluator::State::answer(const Pending& ask) {
  auto judgement = judged(ask.questions());
  return {.candidate = ask.candidate,
          .fitness = std::move(judgement.fitness),
          .status = judgement.status,
          .earlier_asks = ask.earlier_asks,
          .feasible = judgement.reason.empty()};
}

Judgement RecordingEvaluator::State::judged(const std::vector<std::string>& questions) {
  std::vector<const Evaluation*> evaluations;
  for (const auto& question : questions) evaluations.push_back(&evaluation_of(question));
  return judge(evaluations);
}

RecordingEvaluator::RecordingEvaluator(std::shared_ptr<Measurement> measurement, Store& store,
                                       Judge judge, Options options)
    : state_(new State{.measurement = std::move(measurement),
                       .store = store,
                       .judge = std::move(judge),
                       .options = std::move(options)}) {}

RecordingEvaluator::~RecordingEvaluator() = default;

std::vector<Answer> RecordingEvaluator::ask(const std::vector<Genotype>& batch) {
  auto& state = *state_;
  if (stop_requested()) throw StopRequested();
  if (!state.ledger.spent().empty()) return {};
  state.measurement->begin_batch(state.history);
  state.charging = true;
  auto tasks = state.assign(batch);
  auto& pending = state.pending;
  state.report(Progress::Kind::batch_started);
  state.recall_or_measure(std::move(tasks));
  // Where the device's time ended, the asks before the first incomplete one are answered.
  for (const auto& ask : pending) {
    for (const auto& id : ask.booked) {
      if (state.there(id)) {
        state.take_back_steps(id);
      } else {
        state.ledger.take_back_evaluations(1);
      }
    }
  }
  const auto unanswered = std::find_if_not(
      pending.begin(), pending.end(), [&state](const auto& ask) { return state.is_answered(ask); });
  if (unanswered != pending.end()) state.store.withdraw_asks(unanswered->number, state.batches);
  state.ledger.take_back_asks(pending.end() - unanswered);
  pending.erase(unanswered, pending.end());
  if (state.options.racing) state.race();

  std::vector<Answer> answers;
  std::vector<Ask> record;
  for (const auto& ask : pending) {
    answers.push_back(state.answer(ask));
    record.push_back(state.record(ask, answers.back().fitness));
    state.remember(ask);
  }
  pending.clear();
  state.store.add_asks(record);
  state.forget();
  state.ledger.end_by_time();
  state.report(Progress::Kind::batch_finished);
  ++state.batches;
  return answers;
}

bool RecordingEvaluator::begin(const Genotype& genotype, std::int64_t until, bool anyway) {
  auto& state = *state_;
  if (stop_requested()) state.stop();
  if (!anyway && !state.ledger.spent().empty()) return false;
  state.measurement->begin_batch(state.history);
  state.charging = false;  // but when it is told
  state.ledger.begin_batch();
  state.batch_size = 1;
  std::vector<Task> tasks;
  auto ask = state.assign(genotype, tasks, until, anyway);
  if (!ask) return false;
  ask->place = state.num_begun++;
  if (anyway && !state.beyond_budget) {
    state.beyond_budget = true;
    state.store.set_meta(kAnswerFrom, ask->number);
  }
  double cost = 0.0;
  if (const auto trained = ask->goes_on ? ask->ids.size() : ask->booked.size(); trained > 0) {
    cost = static_cast<double>(trained) * state.measurement->expected_cost(tasks.front().candidate);
    if (const auto steps = state.measurement->steps(); ask->steps < steps) {
      cost *= static_cast<double>(ask->steps) / static_cast<double>(steps);
    }
  }
  const auto number = ask->number;
  state.virtual_order.begin(number, ask->candidate, cost);
  state.asks_out.emplace(number, std::move(*ask));
  state.report(Progress::Kind::batch_started);
  for (const auto& task : tasks) {
    if (state.recall(task)) continue;
    if (state.options.on_measuring) {
      state.options.on_measuring(number);
      if (stop_requested()) state.stop();
    }
    if (const auto& evaluation = state.screen(task); evaluation.status != Status::ok) {
      state.screen_out(evaluation, question_of(task));
    } else {
      state.submit(task);
    }
  }
  state.screened.clear();
  state.record_asking();
  ++state.batches;
  return true;
}

/// Leaves a search of which something is out: what has finished by now is stored.
void RecordingEvaluator::State::stop() {
  while (hear()) {
  }
  throw StopRequested();
}

/// @return the number of the ask that is told next, as the run has recorded it, else the first one
/// that is there.
std::int64_t RecordingEvaluator::State::wait_for_arrival() {
  if (!tells) tells = store.tells();
  for (; told < tells->size(); ++told) {  // a smaller budget asks less than is recorded
    if (asks_out.contains((*tells)[told])) return (*tells)[told];
  }
  for (;;) {
    const auto found = std::find_if(asks_out.begin(), asks_out.end(),
                                    [this](const auto& ask) { return is_answered(ask.second); });
    if (found != asks_out.end()) return found->first;
    if (!hear()) throw std::logic_error("an evaluation is out and never ends");
  }
}

/// Records an ask whose answer the algorithm is about to hear.
void RecordingEvaluator::State::record_tell(const Ask& ask, TellOrder order) {
  if (order == TellOrder::virtual_time) {
    store.add_asks({ask});
    return;
  }
  if (told < tells->size()) {
    store.add_asks({ask});
  } else {
    store.add_tell(static_cast<std::int64_t>(told), ask);
    tells->push_back(ask.number);
  }
  ++told;
}

std::optional<Told> RecordingEvaluator::next(TellOrder order) {
  auto& state = *state_;
  if (state.asks_out.empty()) return std::nullopt;
  const auto number =
      order == TellOrder::arrival ? state.wait_for_arrival() : state.virtual_order.first();
  while (!state.is_answered(state.asks_out.at(number))) {
    if (!state.hear()) throw std::logic_error("an evaluation is out and never ends");
  }
  const auto ask = std::move(state.asks_out.at(number));
  state.asks_out.erase(number);
  state.virtual_order.tell(number);
  state.charge(ask);
  state.remember(ask);
  Told told{.begun = ask.place, .answer = state.answer(ask)};
  state.record_tell(state.record(ask, told.answer.fitness), order);
  state.forget();
  state.ledger.end_by_time();
  state.report(Progress::Kind::batch_finished);
  return told;
}

std::vector<Evaluation> RecordingEvaluator::evaluate(const Candidate& candidate) {
  std::vector<Task> tasks;
  const auto& options = state_->options;
  const auto most = options.racing ? options.racing->replicates : options.replicates;
  const auto count = state_->is_rejected(candidate) ? 1 : most;
  for (std::int64_t replicate = 0; replicate < count; ++replicate) {
    tasks.push_back(make_task(*state_->measurement, candidate, replicate));
  }
  return evaluate(tasks);
}

std::vector<Evaluation> RecordingEvaluator::evaluate(const std::vector<Task>& tasks) {
  auto& state = *state_;
  state.charging = false;
  state.recall_or_measure(tasks);
  std::vector<Evaluation> evaluations;
  for (const auto& task : tasks) {
    evaluations.push_back(state.known.at(question_of(task)));
    evaluations.back().identity = task.identity;
  }
  return evaluations;
}

std::int64_t RecordingEvaluator::num_asked() const {
  return state_->ledger.asked() - std::ssize(state_->asks_out);
}
std::int64_t RecordingEvaluator::num_evaluated() const {
  auto evaluations = state_->ledger.evaluations();
  for (const auto& [number, ask] : state_->asks_out) evaluations -= std::ssize(ask.booked);
  return evaluations;
}
std::int64_t RecordingEvaluator::num_batches() const { return state_->batches; }
std::string RecordingEvaluator::spent() const { return state_->ledger.spent(); }

}  // namespace nas
