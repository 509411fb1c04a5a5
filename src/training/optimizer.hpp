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
#include "training/update_rule.hpp"

namespace torch::serialize {
class InputArchive;
class OutputArchive;
}  // namespace torch::serialize

namespace nas {

/// AdamW (kernels/adamw.hpp; beta1 = 0.9, epsilon = 1e-8), or another rule on those that it takes, on the parameters of an
/// array of models, after clipping each model's gradient g by its total norm: g is multiplied by
/// min(1, clip_norm / (|g| + 1e-6)). Waits for no device.
///
/// By the kernels, of the CPU or of a device (ops/device_operations.hpp), a model's numbers depend
/// on neither the other models, a diverged one among them, nor the number of threads.
class Optimizer {
 public:
  /// @param parameters  contiguous, all of one type and device, where they stay; shared, not copied.
  /// @param models      in the array.
  /// @param decays      whether weight decay applies to a parameter.
  /// @param beta2       of AdamW; must be 0.999 on a device with kernels of its own.
  /// @param rule        of optimizers(); nullptr: AdamW.
  /// @param rates       by what AdamW's learning rate of a parameter is multiplied, on the CPU; empty: 1.
  Optimizer(const std::vector<nn::Parameter>& parameters, std::int64_t models,
            const std::function<bool(const nn::Parameter&)>& decays, double beta2 = 0.999,
            std::shared_ptr<const UpdateRule> rule = nullptr,
            const std::function<double(const nn::Parameter&)>& rates = {});

  /// Whether steps are taken by kernels of the parameters' device, which can be captured.
  [[nodiscard]] bool has_kernels() const { return kernels_ != nullptr; }

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

  /// Writes what is kept of one model by its parameters' names, as if it were alone.
  void save(torch::serialize::OutputArchive& archive, std::int64_t model) const;
  /// @throws c10::Error if the archive lacks one of the model's parameters, or has it in other sizes.
  void load(torch::serialize::InputArchive& archive, std::int64_t model);
  /// Copies what is kept of model `from` of another optimiser to model `to`, by name.
  ///
  /// @throws c10::Error as load().
  void take(const Optimizer& other, std::int64_t from, std::int64_t to);

 private:
  /// A parameter with what is kept of it.
  struct Entry {
    std::string name;
    torch::Tensor parameter;
    std::vector<std::string> names;     ///< of the states
    std::vector<torch::Tensor> states;  ///< of AdamW the two moments
    std::vector<std::int64_t> models;
    torch::Tensor model_index;  ///< `models` on the parameter's device
    bool decays, by_rule;
    double rate = 1.0;
  };
  /// What one thread does at once: some elements of one model's slice of an entry.
  struct Piece {
    std::size_t entry;
    std::size_t model;
    std::int64_t begin;  ///< in the tensor
    std::int64_t size;
  };

  /// By "PARAMETER.STATE".
  [[nodiscard]] std::map<std::string, torch::Tensor> states_of(std::int64_t model) const;
  template <class Real>
  void step_on_cpu(std::span<const ModelStep> steps);
  void step_by_kernels(std::span<const ModelStep> steps);
  void step_by_operations(std::span<const ModelStep> steps);
  /// @param gradient  clipped.
  void step_by_rule(Entry& entry, const torch::Tensor& gradient, std::span<const ModelStep> steps);
  void drop_gradients();

  std::int64_t models_;
  double beta2_;
  std::shared_ptr<const UpdateRule> rule_;
  std::vector<Entry> entries_;
  std::vector<Piece> pieces_;
  std::unique_ptr<nn::DeviceAdamW> kernels_;  ///< of the parameters' device; null: it has none
};

}  // namespace nas
