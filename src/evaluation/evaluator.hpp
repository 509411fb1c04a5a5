#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "genotype/search_space.hpp"
#include "store/evaluation.hpp"
#include "store/store.hpp"

namespace nas {

/// A unit of work: one candidate with one replicate's seed, ready to be measured.
struct Task {
  std::string candidate;  ///< canonical name
  std::int64_t replicate = 0;
  std::string id;           ///< evaluation id
  nlohmann::json identity;  ///< what the id is the hash of
};

/// What is evaluated, and how. The seam between search (which knows genotypes and evaluations) and
/// whatever measures them: a LibTorch training, a table, an analytic function in a test. measure()
/// is called from several threads at once.
class Measurement {
 public:
  virtual ~Measurement() = default;
  /// Canonical name of a genotype: equal for candidates that are the same function.
  [[nodiscard]] virtual std::string canonical(const Genotype& genotype) const = 0;
  /// Everything that determines the result of measuring `candidate`, beyond the candidate's name
  /// and the replicate.
  [[nodiscard]] virtual nlohmann::json identity(const std::string& candidate) const = 0;
  /// Relative cost, for starting the longest first. Any unit.
  [[nodiscard]] virtual double expected_cost(const std::string& /*candidate*/) const { return 1.0; }
  /// Whether each result is committed when it is there (a training) or once a batch (a synthetic
  /// problem).
  [[nodiscard]] virtual bool expensive() const { return true; }
  /// Called once before a batch is measured, with all evaluations of earlier batches of this run in
  /// ask order: where a rule such as early stopping looks at what is known, it looks at this and
  /// nothing else, so that results do not depend on the number of workers. Must come before
  /// identity().
  virtual void begin_batch(std::span<const Evaluation* const> /*earlier*/) {}
  /// What can be known without the expensive part: values, and Status::rejected, which ends the
  /// evaluation there. Called for one task of a batch after the other before any of them is
  /// measured, so that timings are undisturbed. Its exceptions are taken as those of measure().
  virtual void screen(const Task& /*task*/, Evaluation& /*evaluation*/) {}
  /// Fills status, reason, curve, values and measured of `evaluation`, whose other fields are set.
  /// A bad candidate is a status, not an exception. @throws StopRequested if asked to stop; any
  /// other exception becomes Status::failed.
  virtual void measure(const Task& task, Evaluation& evaluation) = 0;
};

/// What happens when a candidate is asked for again.
enum class Repeated {
  reuse,      ///< the first replicates answer always
  retrain,    ///< each ask evaluates further replicates, which answer alone (the published GA)
  replicate,  ///< the same, and all replicates so far answer
};

/// @throws InputError unless "reuse", "retrain" or "replicate".
Repeated parse_repeated(std::string_view text);

/// Where a search must end, whatever its algorithm would do; 0 = no such limit.
struct Budget {
  std::int64_t asks = 0;         ///< the last batch is cut
  std::int64_t evaluations = 0;  ///< caused by asks; the last batch is cut
  double device_seconds = 0.0;   ///< of training, summed; no further training begins
};

/// The answer to one ask.
struct Answer {
  std::string candidate;          ///< canonical name
  std::vector<double> fitness;    ///< objectives in order, in minimisation form, finite
  bool usable = false;            ///< at least one replicate was
  std::int64_t earlier_asks = 0;  ///< for the same candidate in this run
};

/// Something that happened in a batch, for progress displays. Called under a lock, from any worker.
struct Progress {
  enum class Kind { batch_started, evaluation_started, evaluation_finished, batch_finished } kind;
  std::int64_t batch = 0;
  std::int64_t asked = 0;    ///< asks so far, this batch included
  std::int64_t trained = 0;  ///< evaluations measured by this process
  std::int64_t reused = 0;   ///< asks answered by what was known, recorded runs included
  const Evaluation* evaluation = nullptr;  ///< the one that started or finished
};

/// Answers asks for candidates: from the store where the answer is known, else by measuring on a
/// pool of workers. Results, their order and the recorded asks do not depend on the number of
/// workers.
class Evaluator {
 public:
  struct Options {
    int workers = 1;
    Repeated repeated = Repeated::reuse;
    std::int64_t replicates = 1;  ///< evaluations of a candidate for one ask
    Budget budget{};
    std::function<void(const Progress&)> on_progress{};  ///< may be empty
  };
  /// Fitness over the replicates of a candidate, some of them failed: objectives in order, in
  /// minimisation form, finite.
  using Objectives = std::function<std::vector<double>(std::span<const Evaluation* const>)>;

  Evaluator(std::shared_ptr<Measurement> measurement, Store& store, Objectives objectives,
            Options options);
  ~Evaluator();

  /// Evaluates candidates asked for together. @return their answers in order: fewer than asked for
  /// where the budget ends the search, none once it is spent.
  /// @throws StopRequested when a stop was asked for: what was finished by then is committed.
  std::vector<Answer> ask(const std::vector<Genotype>& batch);

  /// Evaluates a candidate outside the search (the baseline), all its replicates: stored, not
  /// recorded as an ask, not charged to the budget.
  std::vector<Evaluation> evaluate(const std::string& candidate);

  [[nodiscard]] std::int64_t num_asked() const;
  /// Evaluations that the asks have caused.
  [[nodiscard]] std::int64_t num_evaluated() const;
  [[nodiscard]] std::int64_t num_batches() const;
  /// What ended the search: "500 evaluations"; empty while the budget lasts.
  [[nodiscard]] std::string spent() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nas
