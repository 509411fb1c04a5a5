#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <torch/types.h>

#include "ops/device_adamw.hpp"
#include "ops/parameter.hpp"

namespace torch::serialize {
class InputArchive;
class OutputArchive;
}  // namespace torch::serialize

namespace nas {

/// A step of one model of an array.
struct ModelStep {
  std::int64_t step = 1;  ///< its number: 1, 2, ...; models may stand at different steps
  double learning_rate = 3e-4;
  double weight_decay = 0.01;  ///< of the parameters that decay
  double clip_norm = 1.0;      ///< largest total norm of the model's gradient
};

/// AdamW (kernels/adamw.hpp; beta1 = 0.9, epsilon = 1e-8) on the parameters of an
/// array of models, after clipping each model's gradient g by its total norm: g is multiplied by
/// min(1, clip_norm / (|g| + 1e-6)). Waits for no device.
///
/// By the kernels, of the CPU or of a device (ops/device_operations.hpp), a model's numbers depend
/// on neither the other models, a diverged one among them, nor the number of threads.
class Optimizer {
 public:
  /// @param parameters  contiguous, all of one type and device, where they stay; shared, not
  /// copied.
  /// @param models      in the array.
  /// @param decays      whether weight decay applies to a parameter.
  /// @param beta2       must be 0.999 on a device with kernels of its own.
  Optimizer(const std::vector<nn::Parameter>& parameters, std::int64_t models,
            const std::function<bool(const nn::Parameter&)>& decays, double beta2 = 0.999);

  /// Uses up the parameters' gradients: one step, then there are none. A parameter without gradient
  /// stays as it is, moments included.
  ///
  /// @param steps  one per model.
  void step(std::span<const ModelStep> steps);
  /// The same on a device with kernels of its own, with numbers that are there and read when the
  /// step is done: it can be captured (nn::DeviceGraph).
  void step(const nn::DeviceSteps& steps);
  /// To be called before a capture of so many steps.
  void begin_recording(std::int64_t steps);
  /// To be called after a capture and before its first replay. @param succeeded  false: nothing was
  /// captured, and what was tried is forgotten.
  void end_recording(bool succeeded);

  /// Writes the moments of one model by its parameters' names, as if it were alone.
  void save(torch::serialize::OutputArchive& archive, std::int64_t model) const;
  /// @throws c10::Error if the archive lacks one of the model's parameters, or has it in other
  /// sizes.
  void load(torch::serialize::InputArchive& archive, std::int64_t model);
  /// Copies the moments of model `from` of another optimiser to model `to`, by name.
  ///
  /// @throws c10::Error as load().
  void take(const Optimizer& other, std::int64_t from, std::int64_t to);

 private:
  /// A parameter with its moments, all of one shape.
  struct Entry {
    std::string name;
    torch::Tensor parameter, first_moment, second_moment;
    std::vector<std::int64_t> models;
    torch::Tensor model_index;  ///< `models` on the parameter's device
    bool decays;
  };
  struct Moments {
    torch::Tensor first, second;
  };
  /// What one thread does at once: some elements of one model's slice of an entry.
  struct Piece {
    std::size_t entry;
    std::size_t model;
    std::int64_t begin;  ///< in the tensor
    std::int64_t size;
  };

  [[nodiscard]] std::map<std::string, Moments> moments_of(std::int64_t model) const;
  template <class Real>
  void step_on_cpu(std::span<const ModelStep> steps);
  void step_by_kernels(std::span<const ModelStep> steps);
  void step_by_operations(std::span<const ModelStep> steps);
  void drop_gradients();

  std::int64_t models_;
  double beta2_;
  std::vector<Entry> entries_;
  std::vector<Piece> pieces_;
  std::unique_ptr<nn::DeviceAdamW> kernels_;  ///< of the parameters' device; null: it has none
};

}  // namespace nas
