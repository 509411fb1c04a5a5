#include "nn/device_stream.hpp"

#include <map>

#include <c10/core/impl/VirtualGuardImpl.h>

namespace nas::nn {

OwnStream::OwnStream(torch::Device device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl devices(device.type());
  if (!device.has_index()) device = devices.getDevice();
  static thread_local std::map<c10::DeviceIndex, c10::Stream> streams;
  auto own = streams.find(device.index());
  if (own == streams.end()) {
    own = streams.emplace(device.index(), devices.getStreamFromGlobalPool(device)).first;
  }
  guard_.reset_stream(own->second);
}

}  // namespace nas::nn
