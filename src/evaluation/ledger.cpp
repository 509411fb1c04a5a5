#include "evaluation/ledger.hpp"

#include <algorithm>
#include <limits>

namespace nas {

std::optional<Replicates> Ledger::ask(Account& account, bool rejected, std::int64_t until) {
  const auto& budget = rules_.budget;
  spent_ = budget.rejected_too_often(rejections_in_a_row_);
  if (!spent_.empty()) return std::nullopt;
  const auto known = account.replicates;
  const auto answering =
      rejected || until > 0
          ? Replicates{.first = 0, .known = std::min(known, std::int64_t{1}), .end = 1}
          : answering_replicates(rules_.repeated, rules_.replicates, known);
  const auto trainings = rejected ? 0 : answering.num_fresh();
  if (trainings > 0) ++newcomers_;
  const auto further = trainings + (rules_.racing ? newcomers_ : 0);
  const auto each = until > 0 ? until : rules_.steps;
  spent_ = budget.exceeded_by(asked_ + 1, evaluations_ + further, steps_ + further * each);
  if (!spent_.empty()) return std::nullopt;
  ++asked_;
  evaluations_ += trainings;
  steps_ += trainings * each;
  if (rejected) ++rejections_in_a_row_;
  if (trainings > 0) rejections_in_a_row_ = 0;
  account.replicates = std::max(known, answering.end);
  return answering;
}

bool Ledger::go_on(std::int64_t steps, bool anyway) {
  if (!anyway) {
    spent_ = rules_.budget.exceeded_by(asked_ + 1, evaluations_, steps_ + steps);
    if (!spent_.empty()) return false;
  }
  ++asked_;
  steps_ += steps;
  return true;
}

void Ledger::charge(const std::string& id, const Taken& taken, std::int64_t booked) {
  auto& before = taken_[id];
  charge(taken.seconds - before.seconds);
  take_back_steps(booked - (taken.steps - before.steps));
  before = taken;
}

std::optional<std::int64_t> Ledger::paused_at(const std::string& id) const {
  const auto found = taken_.find(id);
  if (found == taken_.end() || !found->second.paused) return std::nullopt;
  return found->second.steps;
}

std::optional<double> Ledger::seconds_left() const {
  if (rules_.budget.train_seconds <= 0.0) return std::nullopt;
  return std::max(0.0, rules_.budget.train_seconds - seconds_);
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
  // There may be room for one, where a race had more in mind: what has ended the search stands.
  if (auto by = rules_.budget.exceeded_by(asked_, evaluations_ + 1, steps_ + rules_.steps);
      !by.empty()) {
    spent_ = std::move(by);
  }
}

void Ledger::end_by_time() {
  if (auto used_up = rules_.budget.used_up_by(seconds_); !used_up.empty()) {
    spent_ = std::move(used_up);
  }
}

}  // namespace nas
