#include "evaluation/worker_pool.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/stop.hpp"
#include "evaluation/policy.hpp"

namespace nas {

namespace {

using Array = PoolEvents::Array;

/// How an array of several is measured: as one (part = its size), or in parts of so many tasks.
struct Division {
  std::size_t part;
  std::string failure{};  ///< which the members are left to themselves for
};

/// Measures an array of several as a whole, if that works.
Division measure_together(Measurement& measurement, Array array) {
  const auto half = (array.size() + 1) / 2;
  try {
    measurement.measure_array(array);
  } catch (const StopRequested&) {
    throw;
  } catch (const MachineError&) {
    throw;
  } catch (const std::system_error&) {
    throw;
  } catch (const MemoryLimitExceeded&) {
    return {half};
  } catch (const std::bad_alloc&) {
    return {half};
  } catch (const std::exception& error) {
    return {1, error.what()};
  }
  const bool fitted = std::none_of(array.begin(), array.end(), [](const Assignment& member) {
    return member.evaluation.status == Status::out_of_memory;
  });
  return {fitted ? array.size() : half};
}

/// The workers' common state.
class Pool {
 public:
  Pool(Measurement& measurement, const PoolEvents& events)
      : measurement_(measurement), events_(events) {}

  /// Measures arrays until there are none left or one fails; from several threads.
  /// @param next  @return the next array, empty: there is none.
  void work(const std::function<Array()>& next) {
    try {
      for (auto array = next(); !array.empty() && !ended_; array = next()) {
        if (stop_requested()) throw StopRequested();
        if (!events_.begin(array)) break;
        measure(array);
      }
    } catch (...) {
      end(std::current_exception());
    }
  }

  /// Measures what memory did not suffice for beside others, one after the other.
  void work_alone() {
    try {
      for (const auto& postponed : postponed_) {
        if (stop_requested()) throw StopRequested();
        record_lone_failure(postponed.evaluation, [&] {
          measurement_.measure_array({&postponed, 1});
        });
        events_.finish({&postponed, 1});
      }
    } catch (...) {
      end(std::current_exception());
    }
  }

  [[nodiscard]] bool has_postponed() const { return !ended_ && !postponed_.empty(); }
  [[nodiscard]] std::exception_ptr broken() const { return broken_; }

 private:
  void measure(Array array) {
    if (array.size() == 1) {
      measure_one(array);
      return;
    }
    std::vector<Evaluation> before;
    for (const auto& member : array) before.push_back(member.evaluation);
    const auto [part, failure] = measure_together(measurement_, array);
    if (part == array.size()) {
      for (const auto& member : array) member.evaluation.measured["array"] = array.size();
      events_.finish(array);
      return;
    }
    for (std::size_t i = 0; i < array.size(); ++i) {
      array[i].evaluation = before[i];
      if (!failure.empty()) array[i].evaluation.measured["array_failure"] = failure;
    }
    for (std::size_t i = 0; i < array.size(); i += part) {
      measure(array.subspan(i, std::min(part, array.size() - i)));
    }
  }

  void measure_one(Array one) {
    auto& evaluation = one.front().evaluation;
    const Evaluation before = evaluation;
    try {
      record_failure(evaluation, [&] { measurement_.measure_array(one); });
    } catch (const std::bad_alloc&) {
      evaluation = before;
      const std::lock_guard lock(mutex_);
      postponed_.push_back(one.front());
      return;
    }
    events_.finish(one);
  }

  /// Ends the work of all: with the first failure, but a stop only where there is nothing else.
  void end(const std::exception_ptr& why) {
    const auto is_stop = [](const std::exception_ptr& exception) {
      try {
        std::rethrow_exception(exception);
      } catch (const StopRequested&) {
        return true;
      } catch (...) {
        return false;
      }
    };
    const std::lock_guard lock(mutex_);
    if (!broken_ || (is_stop(broken_) && !is_stop(why))) broken_ = why;
    if (!is_stop(broken_)) others_.ask();
    ended_ = true;
  }

  Measurement& measurement_;
  const PoolEvents& events_;
  std::mutex mutex_;
  std::vector<Assignment> postponed_;
  std::exception_ptr broken_;
  std::atomic<bool> ended_{false};
  StopOfOthers others_;
};

}  // namespace

std::exception_ptr measure_on_workers(Measurement& measurement,
                                      std::span<const Assignment> assignments, int workers,
                                      const PoolEvents& events) {
  const auto tasks = assignments.size();
  const auto most = static_cast<std::size_t>(std::max(1, workers));
  const auto width = tasks > most ? measurement.array_width() : 1;
  const auto arrays = num_arrays(tasks, most, static_cast<std::size_t>(width));
  std::atomic<std::size_t> next{0};
  const auto next_array = [&]() -> Array {
    const auto i = next++;
    if (i >= arrays) return {};
    const auto first = i * tasks / arrays;
    return assignments.subspan(first, (i + 1) * tasks / arrays - first);
  };
  Pool pool(measurement, events);
  if (!measurement.expensive()) {
    pool.work(next_array);
    if (pool.has_postponed()) pool.work_alone();
    return pool.broken();
  }
  // Always on threads of their own: a worker sets its thread's number of OpenMP threads.
  std::vector<std::thread> threads;
  try {
    while (threads.size() < std::min(most, arrays)) {
      threads.emplace_back([&] { pool.work(next_array); });
    }
  } catch (const std::system_error& error) {
    // The system allows no further thread: those that run do everything.
    if (threads.empty()) throw MachineError(std::string("no thread can run: ") + error.what());
  }
  for (auto& thread : threads) thread.join();
  if (pool.has_postponed()) std::thread([&pool] { pool.work_alone(); }).join();
  return pool.broken();
}

// Which exceptions are a candidate's own is told by their type, and the type is given where it is
// known: what a model throws while it is built, computes or learns becomes a CandidateFailure there
// (nn/model_failure.hpp), unless it says that memory or a device failed. An InputError says that
// what is asked for cannot be had, such as a mechanism that a table lacks. Everything else comes
// from files, the store, the system or a defect of the program, which would be true of any
// candidate.
void record_failure(Evaluation& evaluation, const std::function<void()>& work) {
  const auto fail = [&evaluation](Status status, const char* reason) {
    evaluation.status = status;
    evaluation.reason = reason;
  };
  try {
    work();
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
    record_failure(evaluation, work);
  } catch (const DeviceOutOfMemory& error) {
    evaluation = before;
    evaluation.status = Status::out_of_memory;
    evaluation.reason = error.what();
  } catch (const std::bad_alloc&) {
    throw MachineError("the memory of this machine does not suffice for " + evaluation.candidate +
                       ", even with nothing beside it; evaluation.memory_limit makes that a "
                       "result of the mechanism");
  }
}

}  // namespace nas
