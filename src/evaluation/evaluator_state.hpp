#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/at_work.hpp"
#include "evaluation/ledger.hpp"
#include "evaluation/outcomes.hpp"
#include "evaluation/recall.hpp"
#include "evaluation/recording_evaluator.hpp"
#include "evaluation/virtual_order.hpp"

namespace nas {

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
  [[nodiscard]] bool is_answered(const Recollection& known) const {
    return std::all_of(ids.begin(), ids.end(),
                       [&](const auto& id) { return known.contains(question_of(id, until)); });
  }
  [[nodiscard]] Ask record(std::vector<double> fitness) const {
    return {.number = number,
            .batch = batch,
            .genotype = genotype,
            .evaluations = ids,
            .reused = reused,
            .fitness = std::move(fitness),
            .until = until};
  }
};

/// The order of answers that are returned as they arrive: first as the run has recorded it, so that a
/// search that is repeated gets them in the same order, then as they come.
class ArrivalOrder {
 public:
  explicit ArrivalOrder(Store& store) : store_(store) {}
  /// @return the number of the ask that is recorded next; nothing beyond the record.
  /// @param is_out  whether an ask is: a smaller budget asks less than is recorded.
  std::optional<std::int64_t> recorded(const std::function<bool(std::int64_t)>& is_out) {
    if (!tells_) tells_ = store_.tells();
    while (told_ < tells_->size() && !is_out((*tells_)[told_])) ++told_;
    return told_ < tells_->size() ? std::optional((*tells_)[told_]) : std::nullopt;
  }
  /// Records an ask that is answered next, after a call of recorded().
  void tell(const Ask& ask) {
    if (told_ < tells_->size()) {
      store_.add_asks({ask});
    } else {
      store_.add_tell(static_cast<std::int64_t>(told_), ask);
      tells_->push_back(ask.number);
    }
    ++told_;
  }

 private:
  Store& store_;
  std::optional<std::vector<std::int64_t>> tells_{};  ///< numbers of asks; not read yet: nothing
  std::size_t told_ = 0;                              ///< of these
};

/// What a RecordingEvaluator knows and has under way. measuring.cpp has the half that recalls,
/// screens, submits and stores tasks, whatever asked for them; recording_evaluator.cpp that which
/// decides what is asked for and answers.
struct RecordingEvaluator::State {
  State(std::shared_ptr<Measurement> measured_by, Store& kept_in, Judge judged_by, Options chosen);

  // Measuring.

  /// Whether asks are out that are answered one by one: then results are stored at once, however
  /// little they cost, and nothing is withdrawn when the time is spent.
  [[nodiscard]] bool one_by_one() const { return !batch.together && !asks.empty(); }
  void report(Progress::Kind kind, const Evaluation* evaluation = nullptr,
              const Evaluation* last = nullptr, const Advance& advance = {}) const;
  /// Recalls what is known of some tasks, screens the others one after the other, and has the
  /// remaining ones measured, the longest first.
  /// @param ask  that wants them first; -1: none.
  /// @return the tasks that were not known.
  std::vector<Task> begin(std::vector<Task> tasks, std::int64_t ask);
  /// The same, until nothing is at work. What was screened out or measured is known afterwards, and
  /// stored.
  void recall_or_measure(std::vector<Task> tasks, std::int64_t ask);
  /// What is known of a task before it is measured; ok: it can be.
  const Evaluation& screen(const Task& task);
  /// Waits for what happens next. @return whether something did: nothing does once no task is out.
  bool hear();
  /// Leaves a search of which something is out: what has finished by now is stored.
  [[noreturn]] void stop();
  [[nodiscard]] std::vector<const Evaluation*> measured(const std::vector<std::string>& ids) const;
  bool recall(const Task& task);
  void submit(const Task& task);
  void screen_out(Evaluation evaluation, const std::string& question);
  void handle(Executor::Event event);
  bool try_again(const Evaluation& result);
  void commit(std::vector<Evaluation> results);
  /// Charges a batch what was recalled or measured.
  void charge(const Evaluation& evaluation) {
    if (batch.together) ledger.charge(spent_seconds(evaluation));
  }

  // Asking.

  void require_judgeable(const std::vector<Evaluation>& results) const;
  [[nodiscard]] bool may_ask(bool anyway);
  Pending* assign(const Genotype& genotype, std::vector<Task>& tasks, std::int64_t until = 0,
                  bool anyway = false);
  [[nodiscard]] bool is_rejected(const std::vector<std::string>& ids, const Task& first);
  void preview();
  void record_asking();
  void withdraw_unanswered();
  void race();
  void run_round(const std::vector<std::size_t>& round);
  std::size_t enter(const std::string& candidate);
  [[nodiscard]] double cost_of(const Pending& ask, const std::vector<Task>& tasks) const;
  void charge_told(const Pending& ask);
  void take_back_steps(const std::string& id);
  std::int64_t wait_for_arrival();
  [[nodiscard]] Judgement judged(const std::vector<std::string>& questions);
  [[nodiscard]] Answer answer(const Pending& ask);
  void end_batch();

  std::shared_ptr<Measurement> measurement;
  Store& store;
  Options options;
  Judge judge;
  std::int64_t trained = 0;
  std::int64_t rejected = 0;  ///< evaluations screened out
  std::int64_t reused = 0;
  Recollection known{*measurement, store, options.recall};
  std::map<std::string, Evaluation> screened{};  ///< by id: what may be trained next
  struct Measured {
    Task task;
    Evaluation evaluation;
  };
  std::map<std::string, Measured> measuring{};  ///< what is being measured, by id
  std::shared_ptr<Executor> executor;
  Outcomes outcomes{static_cast<std::size_t>(options.failure_window)};
  AtWork at_work{store, options.stage, executor->workers()};
  std::int64_t batches = 0;
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
  std::vector<const Evaluation*> history{};  ///< of finished batches, in ask order; expensive ones
  std::vector<Racer> racers{};               ///< all candidates, in order of their first ask
  std::map<std::string, std::size_t> racer_by_candidate{};
  std::map<std::int64_t, Pending> asks{};  ///< begun and not answered, by number
  /// Asks that begin together.
  struct Batch {
    std::int64_t size = 0;  ///< candidates
    /// They are answered together as well: their evaluations are charged as they finish, and none
    /// of them is at work once the batch is answered.
    bool together = false;
    std::set<std::int64_t> shown{};  ///< their numbers, as far as previews of them are recorded
  };
  Batch batch{};
  std::int64_t num_begun = 0;  ///< asks, one by one
  bool beyond_budget = false;  ///< whether asks come now that are made whatever the budget says
  VirtualOrder virtual_order{};
  ArrivalOrder arrival_order{store};
};

}  // namespace nas
