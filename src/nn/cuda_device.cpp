// Compiled with a LibTorch with CUDA only.

#include <c10/cuda/CUDAStream.h>

#include "nn/cuda_operations.hpp"

namespace nas::nn {

namespace {

[[maybe_unused]] const bool kSet = [] {
  static const CudaOperations operations;
  set_device_operations(torch::kCUDA, &operations);
  return true;
}();

}  // namespace

cuda::Stream current_stream(torch::Device device) {
  return c10::cuda::getCurrentCUDAStream(device.index()).stream();
}

}  // namespace nas::nn
