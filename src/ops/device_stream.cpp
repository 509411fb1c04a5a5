#include "ops/device_stream.hpp"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <c10/core/impl/VirtualGuardImpl.h>

namespace nas::nn {

namespace {

/// Streams of which threads have one each; those of threads that have ended are reused first, since
/// LibTorch keeps memory and workspaces for every stream that it has met.
class Streams {
 public:
  c10::Stream take(torch::Device device) {
    const std::lock_guard lock(mutex_);
    auto& free = free_[device];
    if (free.empty()) {
      return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
    }
    const auto stream = free.back();
    free.pop_back();
    return stream;
  }

  void give_back(c10::Stream stream) {
    const std::lock_guard lock(mutex_);
    free_[stream.device()].push_back(stream);
  }

 private:
  struct ByName {
    bool operator()(torch::Device a, torch::Device b) const {
      return std::pair(a.type(), a.index()) < std::pair(b.type(), b.index());
    }
  };
  std::mutex mutex_;
  std::map<torch::Device, std::vector<c10::Stream>, ByName> free_;
};

Streams& streams() {
  static Streams streams;
  return streams;
}

class OfThread {
 public:
  ~OfThread() {
    for (const auto stream : own_) streams().give_back(stream);
  }

  c10::Stream on(torch::Device device) {
    for (const auto stream : own_) {
      if (stream.device() == device) return stream;
    }
    return own_.emplace_back(streams().take(device));
  }

 private:
  std::vector<c10::Stream> own_;
};

}  // namespace

OwnStream::OwnStream(torch::Device device) {
  if (device.is_cpu()) return;
  if (!device.has_index()) device = c10::impl::VirtualGuardImpl(device.type()).getDevice();
  static thread_local OfThread own;
  guard_.reset_stream(own.on(device));
}

}  // namespace nas::nn
