#pragma once

#include <vector>

#include <torch/types.h>

#include "ops/parameter.hpp"

namespace nas::nn {

/// A parameter of M models with its moments, all (M, shape...), contiguous, of one type and device.
struct TrainedParameter {
  torch::Tensor parameter, first_moment, second_moment;
  Models models;
  bool decays = false;
};

/// The numbers of a step of R models, in their device's memory: (R) each.
struct DeviceSteps {
  torch::Tensor learning_rates;  ///< float64, as the following two
  torch::Tensor weight_decays;
  torch::Tensor clip_norms;
  torch::Tensor done;  ///< int64, steps before this one; 1 is added
};

/// AdamW after clipping (cuda/adamw.hpp) for the parameters of an array on one device, by kernels
/// that read numbers, moments and gradients when they run.
class DeviceAdamW {
 public:
  virtual ~DeviceAdamW() = default;
  /// One step with the present gradients, which stay; a parameter without one stays as it is. The
  /// addresses of gradients are written to the device where they differ from those of the last
  /// step; of a step that is captured (DeviceGraph), by end_recording().
  virtual void step(const DeviceSteps& steps) = 0;
  /// To be called before a capture of so many steps, of which there is one at most; allocates.
  virtual void begin_recording(std::int64_t steps) = 0;
  /// To be called after a capture and before its first replay. @param succeeded  false: there is
  /// none.
  virtual void end_recording(bool succeeded) = 0;
};

}  // namespace nas::nn
