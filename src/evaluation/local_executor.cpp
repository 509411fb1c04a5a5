#include "evaluation/local_executor.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/host.hpp"
#include "core/stop.hpp"
#include "evaluation/failures.hpp"
#include "evaluation/policy.hpp"

namespace nas {

namespace {

using Array = std::span<const Assignment>;
using Clock = std::chrono::steady_clock;

/// Number of the worker that a thread is.
thread_local std::size_t worker_number = 0;

/// How an array of several is measured: as one (part = its size), or in parts of so many tasks.
struct Division {
  std::size_t part;
  std::string failure{};  ///< for which the members are measured one by one
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

bool is_stop(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const StopRequested&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::vector<std::string> ids_of(Array array) {
  std::vector<std::string> ids;
  for (const auto& member : array) ids.push_back(member.task.id);
  return ids;
}

class LocalExecutor final : public Executor {
 public:
  LocalExecutor(Measurement& measurement, int workers)
      : measurement_(measurement), most_(static_cast<std::size_t>(std::max(1, workers))) {}
  ~LocalExecutor() override { LocalExecutor::abandon(); }

  [[nodiscard]] int workers() const override { return static_cast<int>(most_); }

  void submit(Task task, Evaluation begun) override {
    orders_.push_back({std::move(task), std::move(begun)});
    submitted_.push_back({orders_.back().task, orders_.back().evaluation});
  }

  void withdraw() override {
    const std::lock_guard lock(mutex_);
    submitted_.clear();
    waiting_.clear();
  }

  std::optional<Event> next() override {
    if (!submitted_.empty()) divide();
    std::unique_lock lock(mutex_);
    handled_ = told_;
    changed_.notify_all();
    if (!measurement_.expensive()) {
      lock.unlock();
      if (events_.empty()) work_on_one();
      lock.lock();
    } else {
      do {
        start_threads();
        changed_.wait(lock, [this] { return !events_.empty() || working_ == 0; });
      } while (events_.empty() && !ended_by_ && !waiting_.empty());
      if (events_.empty() && !ended_by_ && !postponed_.empty()) {
        lock.unlock();
        join();
        lock.lock();
        alone_ = true;
        start_thread([this] {
          work_alone();
          const std::lock_guard working(mutex_);
          alone_ = false;
        });
        changed_.wait(lock, [this] { return !events_.empty() || working_ == 0; });
      }
    }
    if (!events_.empty()) {
      auto event = std::move(events_.front());
      events_.pop_front();
      ++told_;
      return event;
    }
    lock.unlock();
    if (!measurement_.expensive() && !ended_by_ && !postponed_.empty()) {
      work_alone();
      return next();
    }
    const auto ended_by = ended_by_;
    clear();
    if (ended_by) std::rethrow_exception(ended_by);
    return std::nullopt;
  }

  void abandon() override {
    {
      const std::lock_guard lock(mutex_);
      waiting_.clear();
      abandoned_ = true;
      ask_others();
      changed_.notify_all();
    }
    clear();
  }

 private:
  /// When a worker began something.
  struct Begun {
    std::string utc = utc_now();
    Clock::time_point time = Clock::now();
  };
  struct Order {
    Task task;
    Evaluation evaluation;
  };

  /// Makes arrays of what was submitted.
  void divide() {
    const auto tasks = submitted_.size();
    // Finding out how wide arrays should be may take a while, in which nothing else may be at work.
    if (tasks > most_ && (width_ || idle())) {
      width_ = static_cast<std::size_t>(measurement_.array_width());
    }
    const auto width = tasks > most_ ? width_.value_or(1) : 1;
    const auto first = arrays_.size();
    if (width == 1) {
      for (const auto& one : submitted_) arrays_.emplace_back(1, one);
    } else {
      for (const auto& places : arrays_of(measurement_.alike(submitted_), most_, width)) {
        auto& array = arrays_.emplace_back();
        for (const auto place : places) array.push_back(submitted_[place]);
      }
    }
    const std::lock_guard lock(mutex_);
    for (auto i = first; i < arrays_.size(); ++i) waiting_.emplace_back(arrays_[i]);
    submitted_.clear();
    // While something is at work its listener is called.
    if (measurement_.expensive() && !std::exchange(listening_, true)) {
      measurement_.set_listener([this](Array array, const Advance& advance) {
        tell({.kind = Event::Kind::advanced, .ids = ids_of(array), .advance = advance});
      });
    }
  }

  bool idle() {
    const std::lock_guard lock(mutex_);
    return working_ == 0;
  }

  /// As many as have work. Always threads of their own: a worker sets its thread's number of OpenMP
  /// threads. Needs the lock.
  void start_threads() {
    while (working_ < most_ && !waiting_.empty() && !ended_by_ && !alone_) {
      const auto array = waiting_.front();
      waiting_.pop_front();
      if (!start_thread([this, array] { work(array); })) {
        waiting_.push_front(array);
        break;
      }
    }
  }

  /// @return whether it runs: where the system allows no further thread, those that run do all.
  template <class Work>
  bool start_thread(Work work) {
    std::size_t number = 0;
    while (numbers_.contains(number)) ++number;
    try {
      ++working_;
      numbers_.insert(number);
      // One that has ended waits for nothing any more: it has left the lock, or is about to.
      for (const auto ended : std::exchange(ended_, {})) {
        ended->join();
        threads_.erase(ended);
      }
      threads_.emplace_back();
      threads_.back() = std::thread([this, work, number, self = std::prev(threads_.end())] {
        worker_number = number;
        try {
          work();
        } catch (...) {
          end(std::current_exception());
        }
        const std::lock_guard lock(mutex_);
        --working_;
        numbers_.erase(number);
        ended_.push_back(self);
        changed_.notify_all();
      });
    } catch (const std::system_error& error) {
      threads_.pop_back();
      numbers_.erase(number);
      if (--working_ == 0) throw MachineError(std::string("no thread can run: ") + error.what());
      return false;
    }
    return true;
  }

  /// Measures an array, then what waits.
  void work(Array array) {
    while (!array.empty()) {
      if (stop_requested()) throw StopRequested();
      tell({.kind = Event::Kind::started, .ids = ids_of(array)});
      measure(array);
      const std::lock_guard lock(mutex_);
      if (waiting_.empty() || ended_by_) return;
      array = waiting_.front();
      waiting_.pop_front();
    }
  }

  /// The same of one array, on the thread that waits for events.
  void work_on_one() {
    if (waiting_.empty() || ended_by_) return;
    const auto array = waiting_.front();
    waiting_.pop_front();
    try {
      if (stop_requested()) throw StopRequested();
      tell({.kind = Event::Kind::started, .ids = ids_of(array)});
      measure(array);
    } catch (...) {
      end(std::current_exception());
    }
  }

  /// Measures what was out of memory beside others, one after the other.
  void work_alone() {
    const auto postponed = std::exchange(postponed_, {});
    for (const auto& assignment : postponed) {
      if (stop_requested()) throw StopRequested();
      const Begun begun;
      record_lone_failure(assignment.evaluation, [&] {
        measurement_.measure_array({&assignment, 1});
      });
      finish({&assignment, 1}, begun);
    }
  }

  void measure(Array array) {
    if (array.size() == 1) {
      measure_one(array);
      return;
    }
    std::vector<Evaluation> before;
    for (const auto& member : array) before.push_back(member.evaluation);
    const Begun begun;
    const auto [part, failure] = measure_together(measurement_, array);
    if (part == array.size()) {
      for (const auto& member : array) member.evaluation.measured["array"] = array.size();
      finish(array, begun);
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
    const Begun begun;
    try {
      measurement_.measure_array(one);
    } catch (const std::bad_alloc&) {
      evaluation = before;
      const std::lock_guard lock(mutex_);
      postponed_.push_back(one.front());
      return;
    } catch (const MeasureAlone&) {
      evaluation = before;
      evaluation.measured["alone"] = true;
      const std::lock_guard lock(mutex_);
      postponed_.push_back(one.front());
      return;
    } catch (...) {
      record_failure(evaluation);
    }
    finish(one, begun);
  }

  /// @return the event's number, from 1.
  std::size_t tell(Event event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
    return ++happened_;
  }

  /// Tells it, and waits until it is handled: then nothing may be left to do.
  void finish(Array array, const Begun& begun) {
    if (measurement_.expensive()) {
      const std::chrono::duration<double> taken = Clock::now() - begun.time;
      for (const auto& member : array) {
        auto& measured = member.evaluation.measured;
        measured["worker"] = worker_number;
        measured["started"] = begun.utc;
        measured["worker_seconds"] = taken.count() / static_cast<double>(array.size());
      }
    }
    Event event{.kind = Event::Kind::finished, .ids = ids_of(array)};
    for (const auto& member : array) event.evaluations.push_back(std::move(member.evaluation));
    const auto number = tell(std::move(event));
    if (!measurement_.expensive()) return;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return handled_ >= number || abandoned_; });
  }

  /// Ends the work of all: with the first failure, but a stop only where there is nothing else.
  void end(const std::exception_ptr& why) {
    const std::lock_guard lock(mutex_);
    if (!ended_by_ || (is_stop(ended_by_) && !is_stop(why))) ended_by_ = why;
    if (!is_stop(ended_by_)) ask_others();
  }

  /// Asks those that work to stop. Needs the lock.
  void ask_others() {
    if (working_ > 0 && !others_) others_.emplace().ask();
  }

  void join() {
    for (auto& thread : threads_) thread.join();
    threads_.clear();
    ended_.clear();
  }

  /// Begins anew. Nobody may wait for a call of next().
  void clear() {
    join();
    measurement_.set_listener({});
    submitted_.clear();
    waiting_.clear();
    postponed_.clear();
    arrays_.clear();
    orders_.clear();
    events_.clear();
    ended_by_ = nullptr;
    others_.reset();
    abandoned_ = alone_ = listening_ = false;
    told_ = handled_ = happened_ = 0;
  }

  Measurement& measurement_;
  std::size_t most_;
  std::deque<Order> orders_{};           ///< where the assignments' tasks and evaluations lie
  std::vector<Assignment> submitted_{};  ///< not divided into arrays yet
  std::deque<std::vector<Assignment>> arrays_{};
  std::list<std::thread> threads_{};
  std::optional<std::size_t> width_{};  ///< of arrays, once it is known
  bool listening_ = false;

  std::mutex mutex_{};  ///< of what follows
  std::condition_variable changed_{};
  std::deque<Array> waiting_{};
  std::vector<Assignment> postponed_{};
  std::deque<Event> events_{};
  std::size_t happened_ = 0, told_ = 0, handled_ = 0;  ///< events
  std::size_t working_ = 0;                            ///< threads
  std::set<std::size_t> numbers_{};                    ///< of these
  std::exception_ptr ended_by_{};
  std::optional<StopOfOthers> others_{};
  std::vector<std::list<std::thread>::iterator> ended_{};  ///< threads that can be joined
  bool alone_ = false;  ///< what was out of memory beside others is measured
  bool abandoned_ = false;
};

}  // namespace

std::unique_ptr<Executor> local_executor(Measurement& measurement, int workers) {
  return std::make_unique<LocalExecutor>(measurement, workers);
}

}  // namespace nas
