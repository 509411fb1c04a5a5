#pragma once

#include <c10/core/StreamGuard.h>
#include <torch/types.h>

namespace nas::nn {

/// As long as it lives, what the calling thread gives to a device goes to a stream that is the
/// thread's own: threads do not wait for each other, and steps can be captured. On the CPU:
/// nothing.
///
/// A thread keeps its stream of a device as long as it lives.
class OwnStream {
 public:
  explicit OwnStream(torch::Device device);

 private:
  c10::OptionalStreamGuard guard_;
};

}  // namespace nas::nn
