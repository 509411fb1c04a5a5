#include "evaluation/worker_pool.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/stop.hpp"
#include "evaluation/policy.hpp"

namespace nas {

namespace {

using Array = PoolEvents::Array;

/// Measures an array of several as a whole.
/// @return tasks of each part that it is to be measured in instead; the whole: it is done.
std::size_t measure_together(Measurement& measurement, Array array) {
  const auto half = (array.size() + 1) / 2;
  try {
    measurement.measure_array(array);
  } catch (const StopRequested&) {
    throw;
  } catch (const MemoryLimitExceeded&) {
    return half;
  } catch (const std::bad_alloc&) {
    return half;
  } catch (const std::exception&) {
    return 1;
  }
  const bool fitted = std::none_of(array.begin(), array.end(), [](const Assignment& member) {
    return member.evaluation.status == Status::out_of_memory;
  });
  return fitted ? array.size() : half;
}

void measure(Measurement& measurement, Array array, const PoolEvents& events) {
  if (array.size() == 1) {
    guarded(array.front().evaluation, [&] { measurement.measure_array(array); });
    events.finish(array);
    return;
  }
  std::vector<Evaluation> before;
  for (const auto& member : array) before.push_back(member.evaluation);
  const auto part = measure_together(measurement, array);
  if (part == array.size()) {
    for (const auto& member : array) member.evaluation.measured["array"] = array.size();
    events.finish(array);
    return;
  }
  for (std::size_t i = 0; i < array.size(); ++i) array[i].evaluation = before[i];
  for (std::size_t i = 0; i < array.size(); i += part) {
    measure(measurement, array.subspan(i, std::min(part, array.size() - i)), events);
  }
}

}  // namespace

std::exception_ptr measure_on_workers(Measurement& measurement,
                                      std::span<const Assignment> assignments, int workers,
                                      const PoolEvents& events) {
  const auto tasks = assignments.size();
  const auto most = static_cast<std::size_t>(std::max(1, workers));
  const auto width = tasks > most ? measurement.array_width() : 1;
  const auto arrays = num_arrays(tasks, most, static_cast<std::size_t>(width));
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stopped{false};
  std::mutex broken_mutex;
  std::exception_ptr broken;
  const auto work = [&] {
    try {
      for (auto i = next++; i < arrays && !stopped; i = next++) {
        if (stop_requested()) throw StopRequested();
        const auto first = i * tasks / arrays;
        const auto array = assignments.subspan(first, (i + 1) * tasks / arrays - first);
        if (!events.begin(array)) break;
        measure(measurement, array, events);
      }
    } catch (...) {
      const std::lock_guard lock(broken_mutex);
      if (!broken) broken = std::current_exception();
      stopped = true;
    }
  };
  if (measurement.expensive()) {
    // Always on threads of their own: a worker sets its thread's number of OpenMP threads.
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < std::min(most, arrays); ++i) threads.emplace_back(work);
    for (auto& thread : threads) thread.join();
  } else {
    work();
  }
  return broken;
}

void guarded(Evaluation& evaluation, const std::function<void()>& work) {
  const auto fail = [&evaluation](Status status, const char* reason) {
    evaluation.status = status;
    evaluation.reason = reason;
  };
  try {
    work();
  } catch (const StopRequested&) {
    throw;
  } catch (const MemoryLimitExceeded& error) {
    fail(Status::out_of_memory, error.what());
  } catch (const std::bad_alloc&) {
    fail(Status::out_of_memory, "the system has no memory left");
  } catch (const std::exception& error) {
    fail(Status::failed, error.what());
  }
}

}  // namespace nas
