#pragma once

#include <chrono>

namespace nas {

/// A steady clock that stands still while the whole process does: stopped (SIGSTOP, Ctrl-Z, a batch
/// system that suspends jobs), frozen (a cgroup), or on a machine that sleeps. What counts time that
/// was given to a training run asks it. A thread notes each quarter of a second that the process
/// runs; of a gap between two notes 2 s count at the most.
///
/// Cost: below a microsecond. Any thread may ask. A child of fork() begins anew.
std::chrono::steady_clock::time_point awake_now();

}  // namespace nas
