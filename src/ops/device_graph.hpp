#pragma once

#include <functional>

namespace nas::nn {

/// Operations on a device that are captured once and then replayed as a whole by one call of the
/// host: a CUDA graph.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  /// Captures the work that `operations` enqueues without running it. Run it a few times uncaptured
  /// first: libraries allocate workspaces and pick algorithms lazily. Do so on the stream that is
  /// current here (ops/device_stream.hpp), which must not be the default one.
  ///
  /// @param operations  reads nothing from the device and takes nothing from the host but what is
  /// the same at every replay; may allocate: the memory stays the graph's.
  /// @throws c10::Error if something cannot be captured, or out of memory; then there is no graph,
  /// and the device is as before.
  virtual void record(const std::function<void()>& operations) = 0;

  /// Enqueues what was captured.
  virtual void replay() = 0;
};

}  // namespace nas::nn
