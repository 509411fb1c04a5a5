#include "evaluation/ledger.hpp"

#include <algorithm>
#include <limits>

namespace nas {

std::optional<Replicates> Ledger::ask(Account& account, bool rejected) {
  const auto& budget = rules_.budget;
  spent_ = budget.rejected_too_often(rejections_in_a_row_);
  if (!spent_.empty()) return std::nullopt;
  const auto known = account.replicates;
  const auto answering = rejected ? Replicates{.first = 0, .known = known, .end = 1}
                                  : answering_replicates(rules_.repeated, rules_.replicates, known);
  const auto trainings = rejected ? 0 : answering.num_fresh();
  if (trainings > 0) ++newcomers_;
  const auto evaluations_after = evaluations_ + trainings + (rules_.racing ? newcomers_ : 0);
  spent_ = budget.exceeded_by(asked_ + 1, evaluations_after, steps_of(evaluations_after));
  if (!spent_.empty()) return std::nullopt;
  ++asked_;
  evaluations_ += trainings;
  if (rejected) ++rejections_in_a_row_;
  if (trainings > 0) rejections_in_a_row_ = 0;
  account.replicates = std::max(known, answering.end);
  return answering;
}

std::int64_t Ledger::room() const {
  const auto& budget = rules_.budget;
  auto room = std::numeric_limits<std::int64_t>::max();
  if (budget.evaluations > 0) room = budget.evaluations - evaluations_;
  if (budget.train_steps > 0 && rules_.steps > 0) {
    room = std::min(room, (budget.train_steps - steps()) / rules_.steps);
  }
  return std::max(std::int64_t{0}, room);
}

void Ledger::end_by_evaluations() {
  spent_ = rules_.budget.exceeded_by(asked_, evaluations_ + 1, steps_of(evaluations_ + 1));
}

void Ledger::end_by_time() {
  if (auto used_up = rules_.budget.used_up_by(seconds_); !used_up.empty()) {
    spent_ = std::move(used_up);
  }
}

}  // namespace nas
