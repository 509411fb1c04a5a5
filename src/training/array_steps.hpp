#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <torch/types.h>

#include "data/corpus.hpp"
#include "nn/transformer.hpp"
#include "training/batches.hpp"
#include "training/optimizer.hpp"
#include "training/step.hpp"

namespace nas {

/// What one model of an array reads, draws and is told at its steps.
struct Course {
  TrainingOrder order;
  std::uint64_t run_seed = 0;  ///< of dropout, together with the replicate and the step
  std::int64_t replicate = 0;
  /// update(s) gives the optimiser's numbers at step s = 1, 2, ...; in the course of a training run
  /// only the learning rate changes.
  std::function<ModelStep(std::int64_t)> update;
  std::int64_t done = 0;  ///< steps
};

/// What dropout at step 0, 1, ... of a course is drawn from.
std::uint64_t dropout_seed(const Course& course, std::int64_t step);

/// Takes the steps of an array: batches, losses, gradients, updates.
class ArraySteps {
 public:
  virtual ~ArraySteps() = default;
  /// Takes some of the models' next steps and adds each step's losses to the sums. Waits for no
  /// device.
  ///
  /// @param courses  of all models; theirs are advanced.   @param most  >= 1.
  /// @return how many steps each model took: 1, ..., most.
  virtual std::int64_t take(std::span<Course* const> courses, std::int64_t most) = 0;
  /// @return after how many steps the cost of a step is steady.
  [[nodiscard]] virtual std::int64_t warm_up() const = 0;
};

/// On a device with kernels of its own (ops/device_operations.hpp) a step takes nothing from the
/// host but a row of a table that is sent some steps at a time, and is captured after the first few
/// (nn::DeviceGraph), several steps in one graph. Elsewhere the host gives it all. Both
/// compute the same.
///
/// @param models, optimizer, windows  outlive the steps.
/// @param losses  (R) float64, the sums, where the models are.
/// @param record  false: nothing is captured, the host gives every operation.
std::unique_ptr<ArraySteps> array_steps(nn::TransformerArray& models, Optimizer& optimizer,
                                        const Windows& windows, const StepPlan& plan,
                                        torch::Tensor losses, bool record = true);

}  // namespace nas
