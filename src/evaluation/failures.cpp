#include "evaluation/failures.hpp"

#include <new>

#include <unistd.h>

#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/format.hpp"
#include "core/host.hpp"

namespace nas {

// Which exceptions are a candidate's own is told by their type, and the type is given where it is known: what a model throws
// while it is built, computes or learns becomes a CandidateFailure there (ops/model_failure.hpp), unless it says that memory or
// a device failed. An InputError says that what is asked for cannot be had, such as a mechanism that a table lacks. Everything
// else comes from files, the store, the system or a defect of the program, which would be true of any candidate.
void record_failure(Evaluation& evaluation) {
  const auto fail = [&evaluation](Status status, const char* reason) {
    evaluation.status = status;
    evaluation.reason = printable(reason);  // a plug-in may throw any bytes
  };
  try {
    throw;
  } catch (const CandidateFailure& error) {
    fail(Status::failed, error.what());
  } catch (const InputError& error) {
    fail(Status::failed, error.what());
  } catch (const MemoryLimitExceeded& error) {
    fail(Status::out_of_memory, error.what());
  }
}

void record_lone_failure(Evaluation& evaluation, const std::function<void()>& work) {
  const Evaluation before = evaluation;
  try {
    work();
  } catch (const DeviceOutOfMemory& error) {
    evaluation = before;
    evaluation.status = Status::out_of_memory;
    evaluation.reason = printable(error.what());
  } catch (const std::bad_alloc&) {
    throw MachineError("the memory of this machine does not suffice for " + evaluation.candidate +
                       ", even with nothing beside it; evaluation.memory_limit makes that a "
                       "result of the mechanism");
  } catch (...) {
    record_failure(evaluation);
  }
}

Evaluation screened_alone(Measurement& measurement, const Task& task) {
  auto evaluation = unmeasured(task);
  if (measurement.expensive()) {
    evaluation.measured = {{"started", utc_now()}, {"pid", getpid()}, {"host", host_name()}};
  }
  evaluation.status = Status::ok;
  const Evaluation before = evaluation;
  const auto work = [&] { screen(measurement, task, evaluation); };
  try {
    work();
  } catch (const std::bad_alloc&) {
    evaluation = before;
    record_lone_failure(evaluation, work);
  } catch (...) {
    record_failure(evaluation);
  }
  return evaluation;
}

}  // namespace nas
