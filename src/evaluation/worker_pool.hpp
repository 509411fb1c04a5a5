#pragma once

#include <exception>
#include <functional>
#include <span>

#include "evaluation/measurement.hpp"

namespace nas {

/// What the workers of a pool tell, from any of their threads. An exception stops all of them.
struct PoolEvents {
  using Array = std::span<const Assignment>;

  std::function<bool(Array)> begin;   ///< @return whether it may: after false none does
  std::function<void(Array)> finish;  ///< once for each task, those measured together at once
};

/// Measures on a pool of workers, each a thread of its own where the measurement is expensive. They
/// take arrays of neighbours (see num_arrays), the first ones first. Which worker does what changes
/// nothing, nor does who is in whose array: a result depends on its task.
///
/// What does not fit in memory as an array is measured again in halves. Any other failure leaves
/// the members of an array to themselves, since it must not take mates along; of a task alone it is
/// a status where its candidate is the cause (record_failure), and else ends everything: the others
/// are asked to stop. A task alone for which memory does not suffice is measured again once nobody
/// else is at work: only then is too little memory of a device its result.
///
/// What was measured in an array has measured["array"], the number of tasks in it; a task that an
/// array's failure left to itself has the failure's text in measured["array_failure"].
///
/// @return what ended it too early: MachineError, StopRequested, a failure of an event or an
/// unexpected exception; nullptr if nothing did.
std::exception_ptr measure_on_workers(Measurement& measurement,
                                      std::span<const Assignment> assignments, int workers,
                                      const PoolEvents& events);

/// Calls what works on an evaluation. What its candidate is the cause of becomes its status:
/// CandidateFailure, and MemoryLimitExceeded, which is of the candidate's own training.
/// @throws everything else as it comes: no candidate is to be blamed for a fault of the machine, or
/// for one that nobody knows.
void record_failure(Evaluation& evaluation, const std::function<void()>& work);

/// record_failure() while nothing else is at work: too little memory of a device is then the
/// status out_of_memory.
/// @throws MachineError if the machine's memory does not suffice.
void record_lone_failure(Evaluation& evaluation, const std::function<void()>& work);

}  // namespace nas
