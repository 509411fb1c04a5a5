#pragma once

namespace nas {

/// Seconds that the calling thread has computed: what other threads and processes do on the machine
/// does not count.
double thread_cpu_seconds();

}  // namespace nas
