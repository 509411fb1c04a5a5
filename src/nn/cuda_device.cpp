// Compiled with a LibTorch with CUDA only.

#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/version.h>

#include "nn/cuda_operations.hpp"

namespace nas::nn {

namespace {

[[maybe_unused]] const bool kSet = [] {
  static const CudaOperations operations;
  set_device_operations(torch::kCUDA, &operations);
  return true;
}();

class CudaGraph final : public DeviceGraph {
 public:
  explicit CudaGraph(torch::Device device) : device_(device) {}

  void record(const std::function<void()>& operations) override {
    const c10::DeviceGuard guard(device_);
    begin();
    try {
      operations();
    } catch (...) {
      end_in_vain();
      throw;
    }
    graph_.capture_end();
  }

  void replay() override {
    const c10::DeviceGuard guard(device_);
    graph_.replay();
  }

 private:
  void begin() {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1)
    // Other threads, which train on other devices, may do what cannot be recorded.
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
#else
    graph_.capture_begin();
#endif
  }

  /// What was begun has to be ended, whatever it is worth.
  void end_in_vain() noexcept {
    try {
      graph_.capture_end();
    } catch (const std::exception&) {
    }
  }

  torch::Device device_;
  at::cuda::CUDAGraph graph_;
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
