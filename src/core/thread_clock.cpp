#include "core/thread_clock.hpp"

#include <ctime>

namespace nas {

double thread_cpu_seconds() {
  constexpr double kNanoseconds = 1e-9;
  std::timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + kNanoseconds * static_cast<double>(time.tv_nsec);
}

}  // namespace nas
