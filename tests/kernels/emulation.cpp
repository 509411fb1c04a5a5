// The checked longjmp takes a jump to another stack for an error.
#undef _FORTIFY_SOURCE

#include "emulation.hpp"

#include <array>
#include <csetjmp>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ucontext.h>

namespace nas::cuda::emulation {

namespace {
constexpr unsigned kLanes = 32;

#ifdef __clang__  // At jumps of the C library its address sanitizer forgets all frames, which is slow.
#define NAS_SET_PLACE(place) __builtin_setjmp(reinterpret_cast<void**>(place))
__attribute__((noinline, no_sanitize("address"))) void jump(std::jmp_buf& place) {
  __builtin_longjmp(reinterpret_cast<void**>(place), 1);
}
#else
#define NAS_SET_PLACE(place) _setjmp(place)
void jump(std::jmp_buf& place) { _longjmp(place, 1); }
#endif

struct Barrier {
  unsigned arrived = 0;
  std::uint64_t opened = 0;
};

struct Warp {
  Barrier barrier;
  // Two, so that a lane which is ahead does not overwrite what others have yet to read.
  std::array<std::array<std::uint64_t, kLanes>, 2> words{};
};

/// A thread of the block: a stack of its own, which is entered by jumping to where it left off.
struct Fiber {
  std::vector<std::byte> stack = std::vector<std::byte>(std::size_t{64} * 1024);
  ucontext_t start{};
  std::jmp_buf left_off{};
  bool entered = false;
  bool finished = false;
  unsigned num_exchanges = 0;
};

class Machine {
 public:
  void run(const char* kernel, const EmulatedIndex& grid, unsigned threads,
           std::size_t shared_bytes, const std::function<void()>& body) {
    if (shared_bytes > kMostSharedBytes) {
      throw std::runtime_error(std::string(kernel) + ": " + std::to_string(shared_bytes) +
                               " bytes of shared memory, at most " +
                               std::to_string(kMostSharedBytes) + " are there");
    }
    body_ = &body;
    while (fibers_.size() < threads) fibers_.push_back(std::make_unique<Fiber>());
    num_threads_ = threads;
    shared_ = {};  // of exactly this size, so that the address sanitizer knows its end
    gridDim = grid;
    for (unsigned z = 0; z < grid.z; ++z) {
      for (unsigned y = 0; y < grid.y; ++y) {
        for (unsigned x = 0; x < grid.x; ++x) {
          blockIdx = {x, y, z};
          shared_.assign(shared_bytes, std::byte{0xff});
          run_block(kernel);
        }
      }
    }
  }

  void begin_recording() { recording_.emplace(); }
  [[nodiscard]] bool is_recording() const { return recording_.has_value(); }
  std::vector<std::function<void()>> end_recording() {
    return std::exchange(recording_, std::nullopt).value();
  }
  void keep(std::function<void()> launch) { recording_->push_back(std::move(launch)); }

  void set_backwards(bool backwards) { backwards_ = backwards; }

  std::byte* shared_memory() { return shared_.data(); }

  bool wait_for_block(bool predicate) {
    // The first to arrive starts the count anew: all others have left the last barrier.
    any_ = block_.arrived == 0 ? predicate : any_ || predicate;
    if (block_.arrived + 1 == num_threads_) answer_ = any_;
    wait_at(block_, num_threads_);
    return answer_;
  }

  const std::uint64_t* exchange(std::uint64_t word) {
    Warp& warp = warps_[threadIdx.x / kLanes];
    auto& words = warp.words[fibers_[threadIdx.x]->num_exchanges++ % 2];
    words[threadIdx.x % kLanes] = word;
    wait_at(warp.barrier, kLanes);
    return words.data();
  }

 private:
  /// Lets every thread run in turn until all have finished.
  void run_block(const char* kernel) {
    block_ = {};
    warps_.assign(num_threads_ / kLanes, {});
    for (unsigned i = 0; i < num_threads_; ++i) {
      fibers_[i]->finished = false;
      fibers_[i]->num_exchanges = 0;
    }
    for (unsigned left = num_threads_; left > 0;) {
      const std::uint64_t before = progress_;
      for (unsigned i = 0; i < num_threads_; ++i) {
        const unsigned index = backwards_ ? num_threads_ - 1 - i : i;
        Fiber& fiber = *fibers_[index];
        if (fiber.finished) continue;
        threadIdx.x = index;
        enter(fiber);
        if (fiber.finished) --left;
      }
      if (progress_ == before) {
        fibers_.clear();  // they stay where they are: nothing of them can be used again
        throw std::runtime_error(std::string(kernel) + ": " + std::to_string(left) + " of " +
                                 std::to_string(num_threads_) +
                                 " threads wait at a barrier that the others do not reach");
      }
    }
  }

  void wait_at(Barrier& barrier, unsigned size) {
    const std::uint64_t opened = barrier.opened;
    if (++barrier.arrived == size) {
      barrier.arrived = 0;
      ++barrier.opened;
      ++progress_;
      return;
    }
    while (barrier.opened == opened) leave();
  }

  __attribute__((no_sanitize("address"))) void enter(Fiber& fiber) {
    current_ = &fiber;
    if (NAS_SET_PLACE(scheduler_) != 0) return;
    if (fiber.entered) jump(fiber.left_off);
    fiber.entered = true;
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack.data();
    fiber.start.uc_stack.ss_size = fiber.stack.size();
    makecontext(&fiber.start, &run_fiber, 0);
    setcontext(&fiber.start);
  }

  __attribute__((no_sanitize("address"))) void leave() {
    if (NAS_SET_PLACE(current_->left_off) == 0) jump(scheduler_);
  }

  /// A fiber serves one block after the other.
  static void run_fiber();

  const std::function<void()>* body_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Warp> warps_;
  std::vector<std::byte> shared_;
  Barrier block_;
  bool any_ = false;
  bool answer_ = false;
  bool backwards_ = false;
  unsigned num_threads_ = 0;
  std::optional<std::vector<std::function<void()>>> recording_;
  std::uint64_t progress_ = 0;  ///< opened barriers and finished threads
  Fiber* current_ = nullptr;
  std::jmp_buf scheduler_{};
};

Machine& machine() {
  static Machine machine;
  return machine;
}

void Machine::run_fiber() {
  for (Machine& all = machine();;) {
    (*all.body_)();
    all.current_->finished = true;
    ++all.progress_;
    all.leave();
  }
}

}  // namespace

void run(const char* kernel, const EmulatedIndex& grid, unsigned threads, std::size_t shared_bytes,
         const std::function<void()>& body) {
  if (!machine().is_recording()) {
    machine().run(kernel, grid, threads, shared_bytes, body);
    return;
  }
  machine().keep([=] { machine().run(kernel, grid, threads, shared_bytes, body); });
}

void begin_recording() { machine().begin_recording(); }

bool is_recording() { return machine().is_recording(); }

std::function<void()> end_recording() {
  return [launches = machine().end_recording()] {
    for (const auto& launch : launches) launch();
  };
}

void set_backwards(bool backwards) { machine().set_backwards(backwards); }

std::byte* shared_memory() { return machine().shared_memory(); }

bool wait_for_block(bool predicate) { return machine().wait_for_block(predicate); }

const std::uint64_t* exchange(std::uint64_t word) { return machine().exchange(word); }

}  // namespace nas::cuda::emulation
