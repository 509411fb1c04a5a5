#pragma once

#include <functional>

namespace nas::nn {

/// Operations on a device that are recorded once and then repeated as a whole: what a CUDA graph
/// is. The host then starts them by one call.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  /// Records what `operations` gives to the device, of which nothing is done yet. Those before must
  /// have been done some times without a recording, for what libraries prepare at a first call, and
  /// on the stream that is current here (nn/device_stream.hpp), which must not be the default one.
  ///
  /// @param operations  reads nothing from the device and takes nothing from the host but what is
  /// the same at every repetition; may allocate: the memory stays the graph's.
  /// @throws c10::Error if something cannot be recorded, or memory lacks; then there is no
  /// recording, and the device is as before.
  virtual void record(const std::function<void()>& operations) = 0;

  /// Enqueues what was recorded.
  virtual void replay() = 0;
};

}  // namespace nas::nn
