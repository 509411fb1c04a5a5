#include "table/table_evaluator.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "core/stop.hpp"

namespace nas {

TableEvaluator::TableEvaluator(const StudyTable& table, std::uint64_t seed, const Options& options)
    : table_(table),
      replay_(table.table(), table.mode(), seed, options.draw),
      options_(options),
      known_(static_cast<std::size_t>(table.table().num_mechanisms())),
      ledger_({.repeated = options.repeated,
               .replicates = options.replicates,
               .budget = options.budget,
               .steps = table.steps()}) {}

/// Decides which evaluations answer a batch, as far as the budget goes.
/// @param further  receives those that the search has not asked for before.
std::vector<TableEvaluator::Pending> TableEvaluator::assign(const std::vector<Genotype>& batch,
                                                            std::vector<Further>& further) {
  std::vector<Pending> pending;
  ledger_.begin_batch();
  for (const auto& genotype : batch) {
    const auto ask = assign(genotype, further);
    if (!ask) break;
    pending.push_back(*ask);
  }
  return pending;
}

/// The same of one candidate. @return nothing where the budget ends the search.
std::optional<TableEvaluator::Pending> TableEvaluator::assign(const Genotype& genotype,
                                                              std::vector<Further>& further,
                                                              std::int64_t until, bool anyway) {
  const auto mechanism = table_.mechanism(genotype);
  auto& known = known_[static_cast<std::size_t>(mechanism)];
  auto steps = until > 0 ? until : table_.steps();
  const bool goes_on = known.first.paused && known.first.steps < steps;
  std::optional<Replicates> answering;
  if (!goes_on) {
    answering = ledger_.ask(known.account, is_rejected(mechanism), until);
  } else if (ledger_.go_on(steps -= known.first.steps, anyway)) {
    answering = Replicates{.first = 0, .known = 1, .end = 1};
  }
  if (!answering) return std::nullopt;
  for (auto n = answering->known; n < answering->end; ++n) {
    known.replicates.push_back(table_.mode() == ReplayMode::mean ? 0
                                                                 : replay_.replicate(mechanism, n));
    further.push_back({.mechanism = mechanism, .n = n});
  }
  return Pending{.mechanism = mechanism,
                 .replicates = *answering,
                 .earlier_asks = known.account.asks++,
                 .until = until,
                 .goes_on = goes_on,
                 .steps = steps};
}

const StudyTable::Cell& TableEvaluator::cell(const Further& further, std::int64_t until) const {
  const auto& known = known_[static_cast<std::size_t>(further.mechanism)];
  return table_.cell(further.mechanism, known.replicates[static_cast<std::size_t>(further.n)],
                     until);
}

bool TableEvaluator::is_rejected(std::int64_t mechanism) const {
  return table_.cell(mechanism, 0).rejected;
}

/// What the baseline has trained is only recalled, and what is screened out is not trained.
bool TableEvaluator::waits_for_time(const Further& further) const {
  const bool recalled = further.mechanism == options_.baseline && further.n < options_.replicates;
  return !recalled && !cell(further).untrained;
}

/// Looks up evaluations until the time is used up, first those that do not wait for it, as a
/// RecordingEvaluator measures them.
void TableEvaluator::evaluate(std::vector<Further> further) {
  std::stable_partition(further.begin(), further.end(),
                        [this](const Further& one) { return !waits_for_time(one); });
  const auto booked = std::count_if(further.begin(), further.end(), [this](const Further& one) {
    return !is_rejected(one.mechanism);
  });
  std::int64_t evaluated = 0;
  for (const auto& one : further) {
    if (waits_for_time(one) && ledger_.out_of_time()) break;
    look_up(one);
    if (!is_rejected(one.mechanism)) ++evaluated;
  }
  ledger_.take_back_evaluations(booked - evaluated);
}

void TableEvaluator::look_up(const Further& further) {
  ledger_.charge(cell(further).seconds);
  ++known_[static_cast<std::size_t>(further.mechanism)].there;
  if (is_rejected(further.mechanism)) return;
  ledger_.take_back_steps(table_.steps() - cell(further).steps);
}

/// Charges what the evaluations of an ask that was begun by itself have taken since they were told
/// last, in place of the steps that were booked.
void TableEvaluator::take(Pending& ask) {
  auto& known = known_[static_cast<std::size_t>(ask.mechanism)];
  for (auto n = ask.goes_on ? 0 : ask.replicates.known; n < ask.replicates.end; ++n) {
    const auto& found = cell({.mechanism = ask.mechanism, .n = n}, ask.until);
    const auto before = ask.goes_on ? known.first : Spent();
    ask.taken_steps += found.steps - before.steps;
    ask.taken_seconds.push_back(found.seconds - before.seconds);
    ledger_.charge(ask.taken_seconds.back());
    if (n == 0) {
      known.first = {
          .paused = found.status == Status::paused, .steps = found.steps, .seconds = found.seconds};
    }
    if (is_rejected(ask.mechanism)) continue;
    ledger_.take_back_steps(ask.steps - (found.steps - before.steps));
  }
}

/// Answers an ask and adds it to the trajectory.
Answer TableEvaluator::answer(const Pending& ask) {
  auto& known = known_[static_cast<std::size_t>(ask.mechanism)];
  const auto from = [&known, &ask](std::int64_t first) {
    return std::span<const std::int64_t>(known.replicates)
        .subspan(static_cast<std::size_t>(first),
                 static_cast<std::size_t>(ask.replicates.end - first));
  };
  const auto replicates = from(ask.replicates.first);
  Answer answer{.candidate = table_.table().mechanism(ask.mechanism),
                .fitness = {},
                .earlier_asks = ask.earlier_asks};
  if (replicates.size() == 1) {
    const auto& cell = table_.cell(ask.mechanism, replicates.front(), ask.until);
    answer.fitness = cell.fitness;
    answer.status = cell.status;
    answer.feasible = cell.feasible;
  } else {
    auto judgement = table_.judge(ask.mechanism, replicates);
    answer.fitness = std::move(judgement.fitness);
    answer.status = judgement.status;
  }
  const bool first = trajectory_.candidates.empty();
  auto trained = first ? 0 : trajectory_.trained.back();
  auto seconds = first ? 0.0 : trajectory_.seconds.back();
  for (const double more : ask.taken_seconds) seconds += more;
  const auto steps = first ? 0 : trajectory_.steps.back();
  if (!is_rejected(ask.mechanism)) trained += static_cast<std::int32_t>(ask.replicates.num_fresh());
  trajectory_.candidates.push_back(static_cast<std::int32_t>(ask.mechanism));
  trajectory_.trained.push_back(trained);
  trajectory_.seconds.push_back(seconds);
  trajectory_.steps.push_back(steps + ask.taken_steps);
  auto fitness = answer.fitness;
  if (answer.status != Status::paused) {
    known.whole = fitness;
  } else if (!known.whole.empty()) {
    fitness = known.whole;
  } else {
    std::fill(fitness.begin(), fitness.end(), std::numeric_limits<double>::quiet_NaN());
  }
  trajectory_.fitness.insert(trajectory_.fitness.end(), fitness.begin(), fitness.end());
  return answer;
}

std::vector<Answer> TableEvaluator::ask(const std::vector<Genotype>& batch) {
  if (stop_requested()) throw StopRequested();
  std::vector<Answer> answers;
  if (!ledger_.spent().empty()) return answers;
  std::vector<Further> further;
  const auto pending = assign(batch, further);
  evaluate(std::move(further));
  for (auto ask : pending) {
    if (known_[static_cast<std::size_t>(ask.mechanism)].there < ask.replicates.end) break;
    for (auto n = ask.replicates.known; n < ask.replicates.end; ++n) {
      const auto& found = cell({.mechanism = ask.mechanism, .n = n});
      ask.taken_steps += found.steps;
      ask.taken_seconds.push_back(found.seconds);
    }
    answers.push_back(answer(ask));
  }
  ledger_.take_back_asks(std::ssize(pending) - std::ssize(answers));
  ledger_.end_by_time();
  ++batches_;
  return answers;
}

std::int64_t TableEvaluator::num_trainings(const Pending& ask) const {
  return is_rejected(ask.mechanism) ? 0 : ask.replicates.num_fresh();
}

bool TableEvaluator::begin(const Genotype& genotype, std::int64_t until, bool anyway) {
  if (stop_requested()) throw StopRequested();
  if (!anyway && !ledger_.spent().empty()) return false;
  ledger_.begin_batch();
  std::vector<Further> further;
  const auto ask = assign(genotype, further, until, anyway);
  if (!ask) return false;
  auto cost = static_cast<double>(ask->goes_on ? 1 : num_trainings(*ask)) *
              table_.expected_cost(ask->mechanism);
  if (ask->steps < table_.steps()) {
    cost *= static_cast<double>(ask->steps) / static_cast<double>(table_.steps());
  }
  virtual_order_.begin(begun_, table_.table().mechanism(ask->mechanism), cost);
  out_.emplace(begun_, *ask);
  ++begun_;
  ++batches_;
  return true;
}

std::optional<Told> TableEvaluator::next(TellOrder /*order*/) {
  if (out_.empty()) return std::nullopt;
  const auto number = virtual_order_.first();
  virtual_order_.tell(number);
  auto ask = out_.extract(number).mapped();
  take(ask);
  ledger_.end_by_time();
  return Told{.begun = number, .answer = answer(ask)};
}

std::int64_t TableEvaluator::num_evaluated() const {
  auto evaluations = ledger_.evaluations();
  for (const auto& [number, ask] : out_) evaluations -= num_trainings(ask);
  return evaluations;
}

std::int64_t TableEvaluator::num_asked() const {
  return static_cast<std::int64_t>(trajectory_.candidates.size());
}

}  // namespace nas
