#include "ops/device_operations.hpp"

#include <array>

namespace nas::nn {

namespace {

using Table = std::array<const DeviceOperations*, c10::COMPILE_TIME_MAX_DEVICE_TYPES>;

Table& table() {
  static Table operations{};
  return operations;
}

}  // namespace

const DeviceOperations* device_operations(torch::Device device) {
  return table()[static_cast<std::size_t>(device.type())];
}

bool has_kernels(torch::Device device) {
  return device.is_cpu() || device_operations(device) != nullptr;
}

void set_device_operations(torch::DeviceType type, const DeviceOperations* operations) {
  table()[static_cast<std::size_t>(type)] = operations;
}

}  // namespace nas::nn
