#pragma once

#include <functional>

#include "evaluation/measurement.hpp"

namespace nas {

/// Called where an exception of what works on an evaluation is handled. What its candidate is the
/// cause of becomes its status: CandidateFailure, InputError (what is asked for cannot be had, such
/// as a mechanism that a table lacks), and MemoryLimitExceeded, which is of the candidate's own
/// training run.
/// @throws everything else as it comes: no candidate is to be blamed for a fault of the machine, or
/// for an unknown one.
void record_failure(Evaluation& evaluation);

/// Calls what works on an evaluation while nothing else is at work, and records how it failed: a
/// device that is out of memory then gives the status out_of_memory.
/// @throws MachineError if the machine's memory does not suffice.
void record_lone_failure(Evaluation& evaluation, const std::function<void()>& work);

/// What is known of a task before it is measured, with where and when that begins if the measurement
/// is expensive (else the session says it); ok: it can be measured. Nothing else may be at work: what
/// memory did not suffice for is tried again at once.
/// @throws as record_lone_failure() does.
Evaluation screened_alone(Measurement& measurement, const Task& task);

}  // namespace nas
