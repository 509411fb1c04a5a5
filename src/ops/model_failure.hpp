#pragma once

#include <utility>

namespace nas::nn {

/// Rethrows the exception that is being handled, as what it says of a model:
///
/// - StopRequested, MachineError, MemoryLimitExceeded, std::bad_alloc and std::system_error stay
///   what they are;
/// - an exception whose text reports out of memory becomes DeviceOutOfMemory, or std::bad_alloc
///   where it is the host's (LibTorch has a type for it only since 2.0);
/// - one whose text says that a device failed becomes MachineError: the process cannot use it any
///   more, whatever the model;
/// - every other std::exception becomes CandidateFailure: shapes that do not fit, an operation that
///   does not exist. It recurs whenever this model is tried, and no other model has it.
[[noreturn]] void rethrow_as_failure();

/// Builds a model or computes with it, and nothing else: no files, no store.
/// @throws as rethrow_as_failure() says.
template <class Work>
decltype(auto) of_model(Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (...) {
    rethrow_as_failure();
  }
}

}  // namespace nas::nn
