#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include <c10/core/DeviceGuard.h>
#include <torch/types.h>

#include "kernels/cuda/stream.hpp"
#include "ops/device_copy.hpp"
#include "ops/device_operations.hpp"

namespace nas::nn {

/// The operations by the kernels of src/kernels/cuda. Sums are in a fixed order.
const DeviceOperations& cuda_operations();
/// DeviceOperations::adamw() of them.
std::unique_ptr<DeviceAdamW> cuda_adamw(std::vector<TrainedParameter> parameters,
                                        std::int64_t models);

// Defined by whoever links the kernels: ops/cuda_device.cpp, or tests that emulate them.

/// The stream that LibTorch's operations on a device go to now.
cuda::Stream current_stream(torch::Device device);
/// Whether what goes there is being captured (DeviceGraph) instead of run.
bool is_recording(torch::Device device);
std::unique_ptr<DeviceGraph> new_graph(torch::Device device);

/// The stream for kernels on a tensor's device, which is the current device meanwhile.
class StreamOf {
 public:
  explicit StreamOf(const torch::Tensor& x)
      : guard_(x.device()), stream_(current_stream(x.device())) {}
  // NOLINTNEXTLINE(google-explicit-constructor): stands for it
  operator cuda::Stream() const { return stream_; }

 private:
  c10::DeviceGuard guard_;
  cuda::Stream stream_;
};

/// Null for an undefined tensor.
template <class Real>
Real* data_or_null(const torch::Tensor& x) {
  return x.defined() ? x.data_ptr<Real>() : nullptr;
}

/// A copy of plain elements in a device's memory.
template <class Element>
torch::Tensor on_device(const std::vector<Element>& elements, torch::Device device) {
  const auto bytes = elements.size() * sizeof(Element);
  const auto tensor = at::empty({static_cast<std::int64_t>(bytes)}, at::TensorOptions(at::kByte));
  std::memcpy(tensor.data_ptr(), elements.data(), bytes);
  return sent(tensor, device);
}

}  // namespace nas::nn
