#pragma once

#include <memory>

#include "evaluation/executor.hpp"

namespace nas {

/// Measures on a pool of workers of this process: each a thread of its own where the measurement is
/// expensive, else the thread that waits. What was submitted until next() is divided into arrays of
/// tasks that are alike (Measurement::alike), evenly and in their order. A group of tasks that are
/// alike has its share, rounded, of num_arrays(), but no fewer than it needs. The array of the first
/// task begins first.
///
/// What does not fit in memory as an array is measured again in halves. On any other failure the
/// members of an array are measured one by one, so that one of them cannot fail its neighbours; a
/// task that fails alone gets a status where its candidate is the cause (record_failure), and else
/// ends everything: the others are asked to stop. A task alone that is out of memory is measured
/// again once nothing else is at work: only then is too little memory of a device its result.
///
/// What was measured in an array has measured["array"], the number of tasks in it; a task that was
/// measured alone after its array failed has that failure's text in measured["array_failure"]. What an
/// expensive measurement has finished says who did it when: measured["worker"], the worker's number
/// from 0; "started" (UTC); "worker_seconds", its share of the time that the worker took for the array.
///
/// @param measurement  outlives it; its listener is taken while something is at work.
std::unique_ptr<Executor> local_executor(Measurement& measurement, int workers);

}  // namespace nas
