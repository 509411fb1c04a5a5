#pragma once

#include <functional>

#include "store/evaluation.hpp"

namespace nas {

/// Calls what works on an evaluation. What its candidate is the cause of becomes its status:
/// CandidateFailure, InputError (what is asked for cannot be had, such as a mechanism that a table
/// lacks), and MemoryLimitExceeded, which is of the candidate's own training run.
/// @throws everything else as it comes: no candidate is to be blamed for a fault of the machine, or
/// for one that nobody knows.
void record_failure(Evaluation& evaluation, const std::function<void()>& work);

/// record_failure() while nothing else is at work: a device that is out of memory then gives the
/// status out_of_memory.
/// @throws MachineError if the machine's memory does not suffice.
void record_lone_failure(Evaluation& evaluation, const std::function<void()>& work);

}  // namespace nas
