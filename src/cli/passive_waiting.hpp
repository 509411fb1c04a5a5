#pragma once

#include <cstdint>
#include <functional>

namespace nas {

/// A variable of the environment; nullptr if it is not set.
using EnvironmentVariable = std::function<const char*(const char* name)>;

/// Whether a process should let its OpenMP threads sleep while they wait for each other: where a
/// training run has several threads and the user said nothing (OMP_WAIT_POLICY, GOMP_SPINCOUNT). By
/// default they spin, which beside a busy neighbour keeps the thread that they wait for off its
/// core.
///
/// @param threads  of one training run.
bool should_wait_passively(std::int64_t threads, const EnvironmentVariable& variable);

/// Starts this program anew with OMP_WAIT_POLICY=PASSIVE if it should wait passively, since OpenMP
/// reads that before main. Returns if there is nothing to do, and with a warning on standard error
/// if it cannot. Loses what the process has done so far: call it before anything is printed or
/// written, and before threads are started.
///
/// @param argv  as given to main.
void wait_passively(std::int64_t threads, char* const* argv);

}  // namespace nas
