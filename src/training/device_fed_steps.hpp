#pragma once

#include "ops/device_operations.hpp"
#include "training/array_steps.hpp"

namespace nas {

/// Steps that read their batches, seeds and learning rates in the device's memory: windows are sent once, orders once per
/// epoch, the rest in tables of some steps. After the first few, whole tables of steps are captured and replayed as one.
class DeviceFedSteps final : public ArraySteps {
 public:
  /// @param windows  at least plan.batch.
  DeviceFedSteps(nn::TransformerArray& models, Optimizer& optimizer, const Windows& windows,
                 const StepPlan& plan, torch::Tensor losses, bool record);

  std::int64_t take(std::span<Course* const> courses, std::int64_t most) override;
  [[nodiscard]] std::int64_t warm_up() const override;

 private:
  /// Sends what the next `count` steps read.
  void prepare(std::span<Course* const> courses, std::int64_t count);
  void send_orders(std::span<Course* const> courses, std::int64_t count);
  void send_tables(std::span<Course* const> courses, std::int64_t count);
  /// Enqueues a step, the same operations every time.
  void step();
  /// Tries to capture a table of steps; after that either graph_ is there or record_ is false.
  void record();

  nn::TransformerArray& models_;
  Optimizer& optimizer_;
  const Windows& host_windows_;
  StepPlan plan_;
  const nn::DeviceOperations& operations_;
  torch::Tensor losses_;
  bool record_;
  std::int64_t at_once_;              ///< steps of a table, whose batches lie in two epochs at most
  std::int64_t taken_ = 0;            ///< steps
  std::vector<std::int64_t> epochs_;  ///< (R, 2): which are in the slots of the orders
  std::vector<std::int64_t> done_;    ///< (R): what the device counts
  nn::DeviceWindows windows_;
  nn::DeviceOrders orders_;
  nn::StepTables tables_;
  nn::StepNumbers current_;
  nn::DeviceSteps updates_;
  torch::Tensor input_, target_;
  std::unique_ptr<nn::DeviceGraph> graph_;
};

}  // namespace nas
