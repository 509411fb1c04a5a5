#include "evaluation/recording_evaluator.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <stdexcept>
#include <utility>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/hash.hpp"
#include "core/stop.hpp"
#include "evaluation/evaluator_state.hpp"

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

/// A candidate's name, or for long ones, of which a search may have very many, its SHA-256.
std::string key_of(const std::string& name) {
  constexpr std::size_t kShort = 64;
  return name.size() <= kShort ? name : sha256(name);
}

}  // namespace

/// Whether something may be asked now.
bool RecordingEvaluator::State::may_ask(bool anyway) {
  if (stop_requested()) stop();
  if (!anyway && !ledger.spent().empty()) return false;
  measurement->begin_batch(history);
  ledger.begin_batch();
  return true;
}

/// Decides which evaluations answer an ask, which has begun then.
/// @param tasks  receives those that this run has not asked for before.
/// @return null where the budget ends the search.
Pending* RecordingEvaluator::State::assign(const Genotype& genotype, std::vector<Task>& tasks,
                                           std::int64_t until, bool anyway) {
  const auto candidate = measurement->canonical(genotype);
  auto& [known_candidate, ids, account] = asked_for[key_of(candidate.name)];
  if (options.racing && !known_candidate) {
    known_candidate = std::make_shared<const Candidate>(candidate);
  }
  auto first = ids.empty() ? make_task(*measurement, candidate, 0) : Task{};
  const bool untrained = is_rejected(ids, first);
  auto steps = until > 0 ? until : measurement->steps();
  std::optional<Replicates> answering;
  const auto taken = ids.empty() ? std::nullopt : ledger.paused_at(ids.front());
  const bool goes_on = taken && *taken < steps;
  if (!goes_on) {
    answering = ledger.ask(account, untrained, until);
  } else if (ledger.go_on(steps -= *taken, anyway)) {
    answering = Replicates{.first = 0, .known = 1, .end = 1};
  }
  if (!answering) return nullptr;
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
  const auto add = [&](std::int64_t replicate) {
    tasks.push_back(first.id.empty() ? make_task(*measurement, candidate, replicate)
                                     : std::exchange(first, {}));
    tasks.back().until = until;
  };
  for (auto replicate = answering->known; replicate < answering->end; ++replicate) {
    add(replicate);
    ids.push_back(tasks.back().id);
    if (!untrained) ask.booked.push_back(tasks.back().id);
  }
  if (goes_on) add(0);
  ask.ids = {ids.begin() + static_cast<std::ptrdiff_t>(answering->first),
             ids.begin() + static_cast<std::ptrdiff_t>(answering->end)};
  for (auto i = answering->first; !goes_on && until == 0 && i < answering->known; ++i) {
    const auto& id = ids[static_cast<std::size_t>(i)];
    if (!measuring.contains(id)) known.recall_forgotten(id);
  }
  if (ask.reused) ++reused;
  const auto number = ask.number;
  return &asks.emplace(number, std::move(ask)).first->second;
}

/// Records the asks of the batch whose evaluations are all there, so that a reader of the store
/// sees them while the others are measured. Races may still change their answers.
void RecordingEvaluator::State::preview() {
  if (!measurement->expensive() || !batch.together) return;
  std::vector<Ask> answered;
  for (const auto& [number, ask] : asks) {
    if (batch.shown.contains(number) || !ask.is_answered(known)) continue;
    batch.shown.insert(number);
    answered.push_back(ask.record(judged(ask.ids).fitness));
  }
  if (!answered.empty()) store.preview_asks(answered);
}

/// Records the asks that nothing answers yet. They are no asks of the record: what answers them may
/// be withdrawn, and a process that continues asks again.
void RecordingEvaluator::State::record_asking() {
  if (!measurement->expensive()) return;
  auto unanswered = nlohmann::json::array();
  for (const auto& [number, ask] : asks) {
    if (ask.is_answered(known)) continue;
    unanswered.push_back({{"number", number},
                          {"genotype", ask.genotype},
                          {"candidate", ask.candidate},
                          {"evaluations", ask.ids}});
  }
  at_work.asked(batches, std::move(unanswered));
}

/// Charges what the evaluations of an ask that was begun by itself have taken since they were told
/// last, in place of the steps that were booked.
void RecordingEvaluator::State::charge_told(const Pending& ask) {
  // Which part of a training run its failed tries belong to is not recorded.
  const bool whole = ask.until == 0 && !ask.goes_on;
  for (const auto& id : ask.goes_on ? ask.ids : ask.booked) {
    const auto& evaluation = known.at(question_of(id, ask.until));
    ledger.charge(id,
                  {.paused = evaluation.status == Status::paused,
                   .steps = steps_of(evaluation),
                   .seconds = whole ? spent_seconds(evaluation)
                                    : evaluation.measured.value("train_seconds", 0.0)},
                  ask.steps);
  }
}

/// Of what was booked for an evaluation, the steps that it did not take.
void RecordingEvaluator::State::take_back_steps(const std::string& id) {
  ledger.take_back_steps(measurement->steps() - steps_of(known.at(id)));
}

/// Whether a candidate is rejected before it is trained. The first replicate tells, as it is
/// recorded or else by screening it.
/// @param ids    of the replicates that were asked for.
/// @param first  the task of the first one, where none was.
bool RecordingEvaluator::State::is_rejected(const std::vector<std::string>& ids,
                                            const Task& first) {
  // Under the identity that it has had since then: that of a later batch may differ.
  const auto& id = ids.empty() ? first.id : ids.front();
  if (known.contains(id)) return is_screened_out(known.at(id));
  if (const auto found = screened.find(id); found != screened.end()) {
    return is_screened_out(found->second);
  }
  // Not stored yet: the budget may have nothing left for this ask.
  if (const auto* found = known.look_up(id)) return is_screened_out(*found);
  if (!ids.empty()) return false;
  report(Progress::Kind::candidate_screening);
  return is_screened_out(screen(first));
}

/// Refuses what was measured elsewhere and cannot be judged: once it is recorded, every process that
/// continues would end by it. What this process measures is kept: it lacks something by a defect of
/// an objective alone, which can be mended without training again.
/// @throws MachineError naming the evaluation.
void RecordingEvaluator::State::require_judgeable(const std::vector<Evaluation>& results) const {
  if (!judge || !options.executor || (asks.empty() && !options.compute)) return;
  for (const auto& evaluation : results) {
    if (!is_usable(evaluation)) continue;
    // As if all replicates had come to the same: objectives may need several.
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(1, options.replicates));
    const std::vector<const Evaluation*> replicates(count, &evaluation);
    try {
      asks.empty() ? options.compute(replicates) : static_cast<void>(judge(replicates));
    } catch (const std::logic_error& error) {
      throw MachineError("evaluation " + evaluation.id + " of " + evaluation.candidate +
                         ", replicate " + std::to_string(evaluation.replicate) + ", is " +
                         std::string(to_string(evaluation.status)) + ", but " + error.what() +
                         "; it is not recorded");
    }
  }
}

/// Gives further replicates, round by round, to the candidates that may be among the best.
void RecordingEvaluator::State::race() {
  std::vector<std::size_t> entrants;
  for (const auto& [number, ask] : asks) entrants.push_back(enter(ask.candidate));
  while (!ledger.out_of_time()) {
    auto round = undecided(racers, entrants, *options.racing);
    if (std::ssize(round) > ledger.room()) {
      ledger.end_by_evaluations();
      round.resize(static_cast<std::size_t>(ledger.room()));
    }
    if (round.empty()) break;
    run_round(round);
  }
  for (auto& [number, ask] : asks) ask.ids = asked_for.at(key_of(ask.candidate)).ids;
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
  recall_or_measure(std::move(tasks), asks.begin()->first);
  for (const auto i : round) {
    auto& [_, ids, account] = asked_for.at(key_of(racers[i].candidate));
    if (!known.contains(ids.back())) {  // the device's time is spent
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

/// After asks are answered: leaves to the store what no other ask waits for.
void RecordingEvaluator::State::end_batch() {
  known.forget([this] {
    std::set<std::string> wanted;
    for (const auto& [number, ask] : asks) {
      for (auto& question : ask.questions()) wanted.insert(std::move(question));
    }
    return wanted;
  });
  ledger.end_by_time();
  report(Progress::Kind::batch_finished);
}

/// What is known answers an ask; measurements may look at it from now on.
Answer RecordingEvaluator::State::answer(const Pending& ask) {
  if (measurement->expensive()) {
    for (const auto& question : ask.questions()) history.push_back(&known.at(question));
  }
  auto judgement = judged(ask.questions());
  return {.candidate = ask.candidate,
          .fitness = std::move(judgement.fitness),
          .status = judgement.status,
          .earlier_asks = ask.earlier_asks,
          .feasible = judgement.reason.empty()};
}

Judgement RecordingEvaluator::State::judged(const std::vector<std::string>& questions) {
  std::vector<const Evaluation*> evaluations;
  for (const auto& question : questions) evaluations.push_back(&known.recall(question));
  return judge(evaluations);
}

RecordingEvaluator::RecordingEvaluator(std::shared_ptr<Measurement> measurement, Store& store,
                                       Judge judge, Options options)
    : state_(std::make_unique<State>(std::move(measurement), store, std::move(judge),
                                     std::move(options))) {}

RecordingEvaluator::~RecordingEvaluator() = default;

/// Where the device's time ended, the asks before the first incomplete one are answered.
void RecordingEvaluator::State::withdraw_unanswered() {
  for (const auto& [number, ask] : asks) {
    for (const auto& id : ask.booked) {
      if (known.contains(id)) {
        take_back_steps(id);
      } else {
        ledger.take_back_evaluations(1);
      }
    }
  }
  const auto unanswered = std::find_if_not(
      asks.begin(), asks.end(), [this](const auto& ask) { return ask.second.is_answered(known); });
  if (unanswered == asks.end()) return;
  store.withdraw_asks(unanswered->first, batches);
  ledger.take_back_asks(std::distance(unanswered, asks.end()));
  asks.erase(unanswered, asks.end());
}

std::vector<Answer> RecordingEvaluator::ask(const std::vector<Genotype>& batch) {
  auto& state = *state_;
  if (!state.may_ask(/*anyway=*/false)) return {};
  state.batch = {.size = std::ssize(batch), .together = true};
  std::vector<Task> tasks;
  for (const auto& genotype : batch) {
    if (state.assign(genotype, tasks) == nullptr) break;
  }
  state.report(Progress::Kind::batch_started);
  if (!state.asks.empty()) {
    state.recall_or_measure(std::move(tasks), state.asks.begin()->first);
  }
  state.withdraw_unanswered();
  if (state.options.racing) state.race();

  std::vector<Answer> answers;
  std::vector<Ask> record;
  for (const auto& [number, ask] : state.asks) {
    answers.push_back(state.answer(ask));
    record.push_back(ask.record(answers.back().fitness));
  }
  state.asks.clear();
  state.store.add_asks(record);
  state.end_batch();
  ++state.batches;
  return answers;
}

/// What the training that an ask causes costs, for the order of answers.
double RecordingEvaluator::State::cost_of(const Pending& ask,
                                          const std::vector<Task>& tasks) const {
  const auto runs = ask.goes_on ? ask.ids.size() : ask.booked.size();
  if (runs == 0) return 0.0;
  const auto cost = static_cast<double>(runs) * measurement->expected_cost(tasks.front().candidate);
  const auto steps = measurement->steps();
  return ask.steps < steps ? cost * (static_cast<double>(ask.steps) / static_cast<double>(steps))
                           : cost;
}

bool RecordingEvaluator::begin(const Genotype& genotype, std::int64_t until, bool anyway) {
  auto& state = *state_;
  if (!state.may_ask(anyway)) return false;
  state.batch = {.size = 1};
  std::vector<Task> tasks;
  auto* ask = state.assign(genotype, tasks, until, anyway);
  if (ask == nullptr) return false;
  ask->place = state.num_begun++;
  if (anyway && !state.beyond_budget) {
    state.beyond_budget = true;
    state.store.set_meta(kAnswerFrom, ask->number);
  }
  state.virtual_order.begin(ask->number, ask->candidate, state.cost_of(*ask, tasks));
  state.report(Progress::Kind::batch_started);
  state.begin(std::move(tasks), ask->number);
  state.record_asking();
  ++state.batches;
  return true;
}

/// @return the number of the ask that is answered next: as the run has recorded it, else the first
/// one whose evaluations are there.
std::int64_t RecordingEvaluator::State::wait_for_arrival() {
  const auto is_out = [this](std::int64_t number) { return asks.contains(number); };
  if (const auto recorded = arrival_order.recorded(is_out)) return *recorded;
  for (;;) {
    const auto found = std::find_if(asks.begin(), asks.end(), [this](const auto& ask) {
      return ask.second.is_answered(known);
    });
    if (found != asks.end()) return found->first;
    if (!hear()) throw std::logic_error("an evaluation is out and never ends");
  }
}

std::optional<Told> RecordingEvaluator::next(TellOrder order) {
  auto& state = *state_;
  if (state.asks.empty()) return std::nullopt;
  const auto number =
      order == TellOrder::arrival ? state.wait_for_arrival() : state.virtual_order.first();
  while (!state.asks.at(number).is_answered(state.known)) {
    if (!state.hear()) throw std::logic_error("an evaluation is out and never ends");
  }
  const auto ask = std::move(state.asks.extract(number).mapped());
  state.virtual_order.tell(number);
  state.charge_told(ask);
  Told told{.begun = ask.place, .answer = state.answer(ask)};
  if (order == TellOrder::arrival) {
    state.arrival_order.tell(ask.record(told.answer.fitness));
  } else {
    state.store.add_asks({ask.record(told.answer.fitness)});
  }
  state.end_batch();
  return told;
}

std::vector<Evaluation> RecordingEvaluator::evaluate(const Candidate& candidate) {
  std::vector<Task> tasks{make_task(*state_->measurement, candidate, 0)};
  const auto& options = state_->options;
  const auto most = options.racing ? options.racing->replicates : options.replicates;
  const auto& ids = state_->asked_for[key_of(candidate.name)].ids;
  const auto count = state_->is_rejected(ids, tasks.front()) ? 1 : most;
  for (std::int64_t replicate = 1; replicate < count; ++replicate) {
    tasks.push_back(make_task(*state_->measurement, candidate, replicate));
  }
  return evaluate(tasks);
}

std::vector<Evaluation> RecordingEvaluator::evaluate(const std::vector<Task>& tasks) {
  auto& state = *state_;
  state.batch.together = false;
  state.recall_or_measure(tasks, /*ask=*/-1);
  std::vector<Evaluation> evaluations;
  for (const auto& task : tasks) {
    evaluations.push_back(state.known.at(question_of(task)));
    evaluations.back().identity = task.identity;
  }
  return evaluations;
}

std::int64_t RecordingEvaluator::num_asked() const {
  return state_->ledger.asked() - std::ssize(state_->asks);
}
std::int64_t RecordingEvaluator::num_evaluated() const {
  auto evaluations = state_->ledger.evaluations();
  for (const auto& [number, ask] : state_->asks) evaluations -= std::ssize(ask.booked);
  return evaluations;
}
std::int64_t RecordingEvaluator::num_batches() const { return state_->batches; }
std::string RecordingEvaluator::spent() const { return state_->ledger.spent(); }

}  // namespace nas
