#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/visibility.hpp"
#include "genotype/candidate.hpp"
#include "store/evaluation.hpp"

namespace NAS_PUBLIC nas {

/// A unit of work: one candidate with one replicate's seed, ready to be measured.
struct Task {
  Candidate candidate;
  std::int64_t replicate = 0;
  std::string id;           ///< evaluation id
  nlohmann::json identity;  ///< what the id is the hash of
  /// Validation step at which it pauses, one of Measurement::rungs() that the measuring of this id
  /// may have come to before; 0: it is measured to the end. No part of the identity.
  std::int64_t until = 0;
};

/// A task and the evaluation that receives its result.
struct Assignment {
  const Task& task;
  Evaluation& evaluation;
};

/// Thrown by a measurement of a task that is to be measured while nothing else is at work: it is
/// called once more then, with `alone` true in the evaluation's `measured`.
class MeasureAlone : public std::exception {};

/// How far the training runs of an array are.
struct Advance {
  std::int64_t step = 0;   ///< taken so far
  std::int64_t steps = 0;  ///< of a whole training run; 0: not known
  double loss = 0.0;       ///< training loss of late, mean over the array; NaN: not known yet
  std::string worker{};    ///< the process that takes them, if it is another one
};

/// What is evaluated, and how. The seam between search (which knows genotypes and evaluations) and
/// whatever measures them: a LibTorch training, a table, an analytic function in a test. measure()
/// and measure_array() are called from several threads at once.
class Measurement {
 public:
  virtual ~Measurement() = default;
  /// The candidate that a genotype is; with a refusal where it is none that can be measured.
  [[nodiscard]] virtual Candidate canonical(const Genotype& genotype) const = 0;
  /// The candidate of a name, as a record or a configuration has it. What a measurement makes of
  /// the name alone needs no genotype. @throws InputError if there is no such candidate.
  [[nodiscard]] virtual Candidate parse(const std::string& name) const { return {.name = name}; }
  /// Everything that determines the result of measuring a candidate, beyond the candidate's name and the replicate.
  [[nodiscard]] virtual nlohmann::json identity() const = 0;
  /// Relative cost, for starting the longest first. Any unit.
  [[nodiscard]] virtual double expected_cost(const Candidate& /*candidate*/) const { return 1.0; }
  /// Whether each result is committed when it is there (a training) or once a batch (a synthetic problem).
  [[nodiscard]] virtual bool expensive() const { return true; }
  /// Steps at which a task may pause (Task::until), ascending; the last one is the end, which counts
  /// for a budget of steps. Empty: it cannot, and takes no steps.
  [[nodiscard]] virtual std::vector<std::int64_t> rungs() const { return {}; }
  /// Steps of a task that comes to its end.
  [[nodiscard]] std::int64_t steps() const {
    const auto all = rungs();
    return all.empty() ? 0 : all.back();
  }
  /// Makes of an expensive evaluation of this measurement what it was at an earlier rung, just as
  /// measuring until there had filled it in.
  virtual void end_at(Evaluation& /*evaluation*/, std::int64_t /*rung*/) const {}
  /// Called once before a batch is measured, with all expensive evaluations of earlier batches of this run, without identities,
  /// in ask order: a rule such as early stopping looks at this and at nothing else that is known, so that results do not depend
  /// on the number of workers. Must come before identity().
  virtual void begin_batch(std::span<const Evaluation* const> /*earlier*/) {}
  /// What can be known without the expensive part: values, and Status::rejected, which ends the evaluation there. Called for
  /// one task of a batch after the other before any of them is measured, so that timings are undisturbed. Its exceptions mean
  /// what those of measure() do. Neither is called for candidates with a refusal.
  virtual void screen(const Task& /*task*/, Evaluation& /*evaluation*/) {}
  /// Fills status, reason, curve, values and measured of `evaluation`, whose other fields are set. A task that comes to its
  /// `until` is Status::paused.
  /// @throws StopRequested if asked to stop; CandidateFailure and MemoryLimitExceeded, which become Status::failed and
  /// out_of_memory; std::bad_alloc (DeviceOutOfMemory) where memory did not suffice beside what else was there, and
  /// MeasureAlone, for one more try alone. Whatever else comes is no result of the candidate and ends the search.
  virtual void measure(const Task& task, Evaluation& evaluation) = 0;
  /// Most tasks that measure_array() takes at once, where more are waiting than there are workers.
  /// May time some the first time, before anything is measured.
  virtual std::int64_t array_width() { return 1; }
  /// Which of some tasks gain by being measured together: groups of their places, which hold each
  /// place once, ascending in a group and by the groups' first.
  [[nodiscard]] virtual std::vector<std::vector<std::size_t>> alike(
      std::span<const Assignment> tasks) const;
  /// measure() for tasks that are measured together, at least one. Each result is what the task
  /// alone comes to. Where an array of several throws, or one of them gets Status::out_of_memory,
  /// nothing that it filled in counts: parts of it are measured again.
  virtual void measure_array(std::span<const Assignment> array) {
    for (const auto& [task, evaluation] : array) measure(task, evaluation);
  }
  /// Called once the evaluation of an expensive measurement, or a paused one, is committed, and again by a later process that
  /// finds it recorded: what was kept for an unfinished measurement can be deleted, and what belongs to a finished one can be
  /// saved. From the thread that asks; what it throws ends the search, and the next process calls it again. Called also for one
  /// that has failed and is to be measured again from its beginning, which is never recorded.
  virtual void recorded(const Evaluation& /*evaluation*/) {}

  using Listener = std::function<void(std::span<const Assignment> array, const Advance& advance)>;
  /// Called about once a second, from the threads that measure, with how far they are; may be empty.
  void set_listener(Listener listener) { listener_ = std::move(listener); }

 protected:
  void tell(std::span<const Assignment> array, const Advance& advance) const {
    if (listener_) listener_(array, advance);
  }

 private:
  Listener listener_;
};

/// The unit of work that measures a candidate at a replicate.
Task make_task(const Measurement& measurement, const Candidate& candidate, std::int64_t replicate);

/// An evaluation that says which one it is, as its task does, and nothing yet of its result.
Evaluation unmeasured(const Task& task);

/// screen(), or Status::rejected for a candidate with a refusal.
void screen(Measurement& measurement, const Task& task, Evaluation& evaluation);

/// Refuses what would be measured otherwise here, but for what a task says of its own training,
/// "training" and "stop_above_nll".
/// @param whose  begins the message; may be empty.
/// @throws InputError "identity.corpus_hash = 1, must be 2 to be measured here".
void require_identity(const nlohmann::json& given, const nlohmann::json& here,
                      const std::string& whose);

/// A task as it passes between processes: "id", "candidate" (its name), "replicate", "identity",
/// and "until" where it is to pause.
nlohmann::json task_json(const Task& task);
/// The task again, where it is measured.
/// @throws InputError if it would be measured otherwise here: `measurement` knows no such candidate or makes another one of the
/// name, has another identity (but for what a task says of its own training, "training" and "stop_above_nll") or rungs, or the
/// id is not that of the identity. The message names what differs.
Task read_task(const nlohmann::json& json, const Measurement& measurement);

}  // namespace nas
