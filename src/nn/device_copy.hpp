#pragma once

#include <torch/types.h>

namespace nas::nn {

/// A tensor of the CPU in a device's memory. The host waits for no copy: it is made from memory
/// that LibTorch keeps until the device has read it.
inline torch::Tensor sent(const torch::Tensor& host, torch::Device device) {
  if (device.is_cpu()) return host;
  return host.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace nas::nn
