#include "kernels/device_memory.hpp"

#include <new>

#include <cuda_runtime.h>

namespace nas::cuda {

bool has_device() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

void* kernel_memory(std::size_t bytes) {
  void* memory = nullptr;
  if (cudaMallocManaged(&memory, bytes) != cudaSuccess) throw std::bad_alloc();
  return memory;
}

void free_kernel_memory(void* memory) noexcept { (void)cudaFree(memory); }

const char* wait_for_device() {
  const auto status = cudaDeviceSynchronize();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}

}  // namespace nas::cuda
