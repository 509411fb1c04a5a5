#pragma once

#include <torch/types.h>

namespace nas::nn {

/// A tensor of the CPU in a device's memory. The host waits for no copy: it is made from memory
/// that LibTorch keeps until the device has read it.
inline torch::Tensor sent(const torch::Tensor& host, torch::Device device) {
  if (device.is_cpu()) return host;
  return (device.is_cuda() ? host.pin_memory() : host).to(device, /*non_blocking=*/true);
}

}  // namespace nas::nn
