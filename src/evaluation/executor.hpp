#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/visibility.hpp"
#include "evaluation/measurement.hpp"

namespace NAS_PUBLIC nas {

/// Measures tasks somewhere: on threads of this process (LocalExecutor), or in processes elsewhere.
/// Which tasks are measured together, where and in which order they finish changes no result: that
/// depends on the task alone. One thread submits and waits.
class Executor {
 public:
  /// What happened to tasks that are measured together, at least one.
  struct Event {
    enum class Kind { started, advanced, finished } kind;
    std::vector<std::string> ids;           ///< of their evaluations
    std::vector<Evaluation> evaluations{};  ///< if finished: as they are now, in the same order
    Advance advance{};                      ///< if advanced
  };

  Executor() = default;
  virtual ~Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Takes on a task, also while others are at work. What waits is started in the order in which it
  /// was submitted, but that later tasks may be measured together with an earlier one.
  /// @param begun  its evaluation, with everything that is known beforehand.
  virtual void submit(Task task, Evaluation begun) = 0;
  /// Forgets what has not started.
  virtual void withdraw() = 0;
  /// Waits for the next event. Whatever finished something starts nothing else before the next call,
  /// so that there is time to withdraw.
  /// @return nothing once no task is out.
  /// @throws what ended the work before its time, once all that had happened by then was told:
  /// MachineError, StopRequested, or an unknown exception.
  virtual std::optional<Event> next() = 0;
  /// Ends what is at work, and forgets all: after an exception of next(), or of the code that handles
  /// its events.
  virtual void abandon() = 0;
  /// Arrays that it measures at once at present, as far as it knows its workers.
  [[nodiscard]] virtual int workers() const { return 1; }
};

}  // namespace nas
