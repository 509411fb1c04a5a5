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

#include "nn/cuda_operations.hpp"

// Before, other threads may not use their devices while one records.
#define NAS_CAN_RECORD \
  (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 2))

namespace nas::nn {

namespace {

[[maybe_unused]] const bool kSet = [] {
  static const CudaOperations operations;
  set_device_operations(torch::kCUDA, &operations);
  return true;
}();

/// LibTorch keeps lists of graphs and the state of its generator without a lock: whoever records or
/// destroys is alone, replays may be several.
std::shared_mutex& graphs_mutex() {
  static std::shared_mutex mutex;
  return mutex;
}

/// A recording that fails may leave LibTorch in a state that no other one should meet.
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
    // While it records, LibTorch gives back no memory that it only keeps for later.
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
    // One replay may wait for another, not many: who asks to stop does not wait for long.
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
    // Other threads, which train on other devices, may do what cannot be recorded.
    graph.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
#else
    TORCH_CHECK(false, "this needs LibTorch 2.2 or later");
#endif
  }

  /// What was begun has to be ended, whatever it is worth.
  void end_in_vain() noexcept {
    try {
      graph_->capture_end();
    } catch (const std::exception&) {
      clean_up();
    }
  }

  /// Does what LibTorch leaves undone where a recording was invalid: memory is taken from its pool
  /// no longer, and its generator is told of an end by an empty recording. What a version has done
  /// itself it refuses, which is as good. Versions that keep pinned memory for recordings go on
  /// holding a filter that points into the failed graph; it is asked only while a stream records,
  /// which none does any more.
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
    attempt([&] { endAllocateToPool(device_.index(), pool_); });
    attempt([&] { releasePool(device_.index(), pool_); });
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
