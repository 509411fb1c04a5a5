#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "evaluation/policy.hpp"

namespace nas {

/// What a search has asked for and what that costs: decides how many replicates of a candidate
/// answer an ask, and where the budget ends the search. Whoever answers asks keeps an Account per
/// candidate.
class Ledger {
 public:
  struct Rules {
    Repeated repeated = Repeated::reuse;
    std::int64_t replicates = 1;  ///< evaluations of a candidate for one ask
    Budget budget{};
    std::int64_t steps = 0;  ///< of training that an evaluation takes if it comes to its end
    /// Leaves room in the budget for one further evaluation of each newcomer of a batch: a race is
    /// to put each first score to the test.
    bool racing = false;
  };
  /// What is known of one candidate.
  struct Account {
    std::int64_t asks = 0;
    std::int64_t replicates = 0;  ///< assigned so far, numbered from 0
  };

  explicit Ledger(const Rules& rules) : rules_(rules) {}

  void begin_batch() { newcomers_ = 0; }
  /// Books an ask of a candidate.
  /// @param rejected  it is rejected before training: one evaluation, the record of that, answers
  /// whenever it is asked for, and is free.
  /// @param until  step of training at which the first replicate pauses, which answers alone; 0: all
  /// come to their end.
  /// @return the replicates that answer; nothing where the budget is spent.
  std::optional<Replicates> ask(Account& account, bool rejected, std::int64_t until = 0);
  /// Books an ask of a candidate that is paused: so many further steps of its first replicate.
  /// @param anyway  whatever the budget says.
  /// @return whether the budget allows it.
  bool go_on(std::int64_t steps, bool anyway);
  /// Books further evaluations of a race.
  void race(std::int64_t evaluations) {
    evaluations_ += evaluations;
    steps_ += evaluations * rules_.steps;
  }
  /// What an evaluation that is begun by itself has taken so far.
  struct Taken {
    bool paused = false;
    std::int64_t steps = 0;
    double seconds = 0.0;
  };
  /// Charges what an evaluation has taken since it was charged last, in place of the steps that were
  /// booked for that.
  void charge(const std::string& id, const Taken& taken, std::int64_t booked);
  /// Steps that an evaluation was charged which is paused; nothing where it is not.
  [[nodiscard]] std::optional<std::int64_t> paused_at(const std::string& id) const;
  /// Books the time that a training run took.
  void charge(double seconds) { seconds_ += seconds; }
  /// Of what was booked and did not take place, since the time was spent. Steps also of training
  /// runs that ended before their time: each evaluation counts all of its steps until then.
  void take_back_asks(std::int64_t asks) { asked_ -= asks; }
  void take_back_evaluations(std::int64_t evaluations) {
    evaluations_ -= evaluations;
    steps_ -= evaluations * rules_.steps;
  }
  void take_back_steps(std::int64_t steps) { steps_ -= steps; }

  /// Whether the budget's time is used up: nothing else may start.
  [[nodiscard]] bool out_of_time() const { return !rules_.budget.used_up_by(seconds_).empty(); }
  /// Seconds of training that the budget has left, at least 0; nothing where it has no such limit.
  [[nodiscard]] std::optional<double> seconds_left() const;
  /// Evaluations that the budget has left; the largest number where it has no limit.
  [[nodiscard]] std::int64_t room() const;
  /// Ends the search where there is no room(), or its time is used up.
  void end_by_evaluations();
  void end_by_time();

  [[nodiscard]] std::int64_t asked() const { return asked_; }
  /// Evaluations that asks have caused.
  [[nodiscard]] std::int64_t evaluations() const { return evaluations_; }
  /// Steps of training that they have taken.
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  /// What ended the search, "93 evaluations"; empty: nothing yet.
  [[nodiscard]] const std::string& spent() const { return spent_; }

 private:
  Rules rules_;
  std::int64_t asked_ = 0;
  std::int64_t evaluations_ = 0;
  std::int64_t steps_ = 0;  ///< of these
  double seconds_ = 0.0;
  std::int64_t newcomers_ = 0;  ///< of the batch
  std::int64_t rejections_in_a_row_ =
      0;  ///< asks so rejected since the last that trained something
  std::string spent_{};
  std::map<std::string, Taken> taken_{};  ///< by id
};

}  // namespace nas
