#include "training/array_steps.hpp"

#include <utility>

#include "core/seed.hpp"
#include "ops/device_copy.hpp"
#include "training/device_fed_steps.hpp"

namespace nas {

namespace {

/// The host makes the batches and gives one operation after the other.
class HostFedSteps final : public ArraySteps {
 public:
  HostFedSteps(nn::TransformerArray& models, Optimizer& optimizer, StepPlan plan,
               torch::Tensor losses)
      : models_(models),
        optimizer_(optimizer),
        plan_(std::move(plan)),
        losses_(std::move(losses)) {}

  std::int64_t take(std::span<Course* const> courses, std::int64_t /*most*/) override {
    nn::Pass pass{.training = true, .seeds = {}};
    std::vector<ModelStep> updates;
    std::vector<torch::Tensor> inputs;
    std::vector<torch::Tensor> targets;
    for (auto* course : courses) {
      pass.seeds.push_back(dropout_seed(*course, course->done));
      const Batch batch = course->order.batch(course->done);
      inputs.push_back(batch.input);
      targets.push_back(batch.target);
      updates.push_back(course->update(++course->done));
    }
    const auto device = losses_.device();
    take_step(models_, optimizer_, plan_,
              {nn::sent(torch::stack(inputs), device), nn::sent(torch::stack(targets), device)},
              pass, updates, losses_);
    return 1;
  }

  [[nodiscard]] std::int64_t warm_up() const override { return 1; }

 private:
  nn::TransformerArray& models_;
  Optimizer& optimizer_;
  StepPlan plan_;
  torch::Tensor losses_;
};

}  // namespace

std::uint64_t dropout_seed(const Course& course, std::int64_t step) {
  return derive_seed(course.run_seed, course.replicate, "dropout", step);
}

std::unique_ptr<ArraySteps> array_steps(nn::TransformerArray& models, Optimizer& optimizer,
                                        const Windows& windows, const StepPlan& plan,
                                        torch::Tensor losses, bool record) {
  if (optimizer.has_kernels() && plan.batch <= windows.size()) {
    return std::make_unique<DeviceFedSteps>(models, optimizer, windows, plan, std::move(losses),
                                            record);
  }
  return std::make_unique<HostFedSteps>(models, optimizer, plan, std::move(losses));
}

}  // namespace nas
