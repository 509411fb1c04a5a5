#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/visibility.hpp"
#include "evaluation/evaluator.hpp"
#include "evaluation/executor.hpp"
#include "evaluation/judgement.hpp"
#include "evaluation/measurement.hpp"
#include "evaluation/policy.hpp"
#include "evaluation/racing.hpp"
#include "store/store.hpp"

namespace NAS_PUBLIC nas {

/// In a run's record: the number of the first ask that was made whatever the budget said, as the
/// last ones of a search. A search that goes on under a larger budget asks for others in their place.
inline constexpr const char* kAnswerFrom = "answer_from";

/// An event of a batch, for progress displays. Reported from the thread that asks.
struct Progress {
  enum class Kind {
    candidate_screening,  ///< about to be looked at: costs, measurements, constraints
    batch_started,
    evaluation_screened_out,  ///< rejected, or failed, before it could start
    evaluation_started,
    evaluation_advanced,
    evaluation_finished,  ///< one that started
    batch_finished
  } kind;
  std::int64_t batch = 0;
  std::int64_t asked = 0;     ///< asks so far, this batch included
  std::int64_t trained = 0;   ///< evaluations measured by this process
  std::int64_t rejected = 0;  ///< those that were rejected before, of this process
  std::int64_t reused = 0;    ///< asks answered by what was known, recorded runs included
  /// The one that was screened out, started, advanced or finished.
  const Evaluation* evaluation = nullptr;
  std::int64_t screening = 0;        ///< which of its batch's candidates is looked at, from 1
  std::int64_t batch_size = 0;       ///< candidates of that batch
  const Evaluation* last = nullptr;  ///< of the array that advanced; itself if it is alone
  Advance advance{};                 ///< how far it is
  /// Of training that the budget allows; nothing where it has no such limit.
  std::optional<double> seconds_left{};
};

/// Finds an evaluation by its id, or does not.
using Recall = std::function<std::optional<Evaluation>(const std::string& id)>;

/// Answers asks for candidates: from the store where the answer is known, else by measuring with an
/// Executor. Results, their order and the recorded asks do not depend on the number of
/// workers, except where answers are returned as they arrive.
///
/// With racing, answers are means over all replicates so far, once a batch's race is decided. They
/// stay what they are until the candidate is asked for again.
///
/// A candidate that is rejected before training, by a constraint or since there is no such model,
/// has one evaluation, the record of that, which answers whenever it is asked for; it is not charged
/// to the budget.
class RecordingEvaluator final : public Evaluator {
 public:
  struct Options {
    int workers = 1;
    std::shared_ptr<Executor> executor{};  ///< what measures; empty: a pool of these workers
    Repeated repeated = Repeated::reuse;
    std::int64_t replicates = 1;  ///< evaluations of a candidate for one ask
    /// How a batch's candidates get further ones; needs Repeated::reuse, and objectives that a
    /// single replicate has a value of. A batch is cut where the budget of evaluations has no
    /// further one for each newcomer.
    std::optional<Racing> racing{};
    Budget budget{};
    Retries retries{};
    /// The search ends where more than half of so many distinct candidates, the latest that were
    /// measured, have failed: see Outcomes. 0: never.
    std::int64_t failure_window = 0;
    /// Finds evaluations that were made elsewhere, by their ids; may be empty. What it finds is
    /// stored and counts as if it had been recorded before.
    Recall recall{};
    std::function<void(const Progress&)> on_progress{};  ///< may be empty
    /// Called before anything is measured that no record answers, with the number of the ask that
    /// wants it, or -1 for what is evaluated outside the search; may ask for a stop. May be empty.
    std::function<void(std::int64_t ask)> on_measuring{};
    /// Computes what judging needs of a usable evaluation, ranges aside, which may be open before
    /// the search; throws std::logic_error where it cannot. May be empty.
    std::function<void(Replicated)> compute{};
    std::string stage = "search";  ///< what it evaluates for, in the record of what it works on
  };

  RecordingEvaluator(std::shared_ptr<Measurement> measurement, Store& store, Judge judge,
                     Options options);
  ~RecordingEvaluator() override;

  std::vector<Answer> ask(const std::vector<Genotype>& batch) override;

  /// Evaluations in flight when the time is spent are completed. An ask is recorded when next()
  /// returns its answer; with TellOrder::arrival its position is recorded as well, and a process
  /// that continues the run returns the recorded answers first, in that order, then what else is
  /// stored, by the numbers of the asks. Nothing may be in flight when a batch or anything outside
  /// the search is evaluated.
  /// A candidate that is to pause is answered by one replicate, as evaluate() answers its task; the
  /// steps and the time since its previous answer are charged to the budget.
  bool begin(const Genotype& genotype, std::int64_t until = 0, bool anyway = false) override;
  std::optional<Told> next(TellOrder order) override;

  /// Evaluates a candidate outside the search (the baseline), all its replicates (with racing, the
  /// most; one if a constraint rejects it before training): stored, not recorded as an ask, not
  /// charged to the budget.
  std::vector<Evaluation> evaluate(const Candidate& candidate);
  /// The same for tasks of any kind that the measurement knows, no two of one id. One that is to
  /// pause (Task::until) is answered by whatever has come that far, also to the end, as it was then;
  /// what is paused is stored as a partial training run.
  std::vector<Evaluation> evaluate(const std::vector<Task>& tasks);

  [[nodiscard]] std::int64_t num_asked() const override;
  [[nodiscard]] std::int64_t num_evaluated() const override;
  [[nodiscard]] std::int64_t num_batches() const override;
  [[nodiscard]] std::string spent() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nas
