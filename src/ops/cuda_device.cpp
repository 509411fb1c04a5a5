// Compiled with a LibTorch with CUDA only.

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/version.h>

#include "ops/cuda_operations.hpp"

// Before LibTorch 2.2, other threads may not use their devices while one captures.
#define NAS_CAN_RECORD \
  (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 2))

/// A name by which a program that links the archive asks for this file, of which it uses nothing
/// else (src/ops/CMakeLists.txt).
extern "C" {
extern const bool nas_cuda_operations_are_set;
const bool nas_cuda_operations_are_set = [] {
  nas::nn::set_device_operations(torch::kCUDA, &nas::nn::cuda_operations());
  return true;
}();
}

namespace nas::nn {

namespace {

/// LibTorch keeps lists of graphs and the state of its generator without a lock: captures and
/// destructions are exclusive, replays may be concurrent.
std::shared_mutex& graphs_mutex() {
  static std::shared_mutex mutex;
  return mutex;
}

/// A failed capture may leave LibTorch in a state in which no other one should begin.
std::atomic<bool> recording_failed{false};

class CudaGraph final : public DeviceGraph {
 public:
  explicit CudaGraph(torch::Device device) : device_(device) {}
  ~CudaGraph() override {
    const c10::DeviceGuard guard(device_);
    const std::unique_lock lock(graphs_mutex());
    graph_.reset();
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void record(const std::function<void()>& operations) override {
    const c10::DeviceGuard guard(device_);
    const std::unique_lock lock(graphs_mutex());
    TORCH_CHECK(!recording_failed, "an earlier recording failed");
    // During a capture LibTorch releases no memory from its cache.
    c10::cuda::CUDACachingAllocator::emptyCache();
    pool_ = at::cuda::graph_pool_handle();
    graph_ = std::make_unique<at::cuda::CUDAGraph>();
    begin(*graph_);
    try {
      operations();
    } catch (...) {
      end_in_vain();
      throw;
    }
    try {
      graph_->capture_end();
    } catch (...) {
      clean_up();
      throw;
    }
  }

  void replay() override {
    const c10::DeviceGuard guard(device_);
    // At most two replays are in flight, so that a stop request is honoured promptly.
    auto& done = done_.at(next_++ % done_.size());
    done.synchronize();
    {
      const std::shared_lock lock(graphs_mutex());
      graph_->replay();
    }
    done.record();
  }

 private:
  void begin([[maybe_unused]] at::cuda::CUDAGraph& graph) const {
#if NAS_CAN_RECORD
    // Other threads, which train on other devices, may do what cannot be captured.
    graph.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
#else
    TORCH_CHECK(false, "this needs LibTorch 2.2 or later");
#endif
  }

  /// Ends a capture that is not wanted any more, since every one has to be ended.
  void end_in_vain() noexcept {
    try {
      graph_->capture_end();
    } catch (const std::exception&) {
      clean_up();
    }
  }

  /// Does what LibTorch leaves undone after an invalid capture: stops allocating from its pool, and
  /// resets its generator by an empty capture. A version that has done so itself refuses, which is
  /// as good. Versions that keep pinned memory for captures still hold a filter that points into
  /// the failed graph; it is called only while a stream captures, which none does any more.
  void clean_up() noexcept {
    recording_failed = true;
#if NAS_CAN_RECORD
    const auto attempt = [](const auto& action) {
      try {
        action();
      } catch (const std::exception&) {
      }
    };
    using namespace c10::cuda::CUDACachingAllocator;
    attempt([&] {
      // Where LibTorch has ended the capture itself and failed later, at making what is replayed, it
      // refuses the first; then its graph gives the pool back, and a second time ends the process.
      endAllocateToPool(device_.index(), pool_);
      releasePool(device_.index(), pool_);
    });
    attempt([&] {
      at::cuda::CUDAGraph nothing;
      nothing.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
      nothing.capture_end();
    });
#endif
  }

  torch::Device device_;
  decltype(at::cuda::graph_pool_handle()) pool_{};
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
  std::array<at::cuda::CUDAEvent, 2> done_;
  std::size_t next_ = 0;
};

}  // namespace

cuda::Stream current_stream(torch::Device device) {
  return c10::cuda::getCurrentCUDAStream(device.index()).stream();
}

bool is_recording(torch::Device device) {
  const c10::DeviceGuard guard(device);
  return c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None;
}

std::unique_ptr<DeviceGraph> new_graph(torch::Device device) {
  return std::make_unique<CudaGraph>(device);
}

}  // namespace nas::nn
