// The CPU as a device with kernels of its own: those of CUDA, emulated (emulation.hpp).
#pragma once

#include "ops/cuda_operations.hpp"

namespace nas::nn::test {

/// As long as this lives, CPU tensors are taken for those of a device.
class Emulation {
 public:
  Emulation() { set_device_operations(torch::kCPU, &cuda_operations()); }
  ~Emulation() { set_device_operations(torch::kCPU, nullptr); }
  Emulation(const Emulation&) = delete;
  Emulation& operator=(const Emulation&) = delete;
};

inline int num_recordings = 0;
inline int num_replays = 0;
inline bool can_record = true;  ///< false: recording fails, as where something waits for the host

}  // namespace nas::nn::test
