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
/// a status. What was measured in an array has measured["array"], the number of tasks in it.
///
/// @return what ended it too early: a failure of an event, or StopRequested; nullptr if nothing
/// did.
std::exception_ptr measure_on_workers(Measurement& measurement,
                                      std::span<const Assignment> assignments, int workers,
                                      const PoolEvents& events);

/// Calls what works on an evaluation; its exceptions become the evaluation's status.
/// @throws StopRequested as it comes.
void guarded(Evaluation& evaluation, const std::function<void()>& work);

}  // namespace nas
