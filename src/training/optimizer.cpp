#include "training/optimizer.hpp"

#include <torch/optim/adamw.h>
#include <torch/serialize.h>

namespace nas {

namespace {

using torch::optim::AdamWOptions;

/// Scales all gradients so that their total norm is at most `max_norm`, without waiting for the
/// device.
void clip_gradients(const std::vector<torch::Tensor>& parameters, double max_norm) {
  std::vector<torch::Tensor> norms;
  for (const auto& parameter : parameters) {
    if (parameter.grad().defined()) norms.push_back(parameter.grad().norm());
  }
  if (norms.empty()) return;
  const auto total = torch::stack(norms).norm();
  const auto factor = (max_norm / (total + 1e-6)).clamp_max(1.0);
  for (const auto& parameter : parameters) {
    if (parameter.grad().defined()) parameter.mutable_grad().mul_(factor);
  }
}

}  // namespace

Optimizer::Optimizer(const nn::Transformer& model, const OptimizerSettings& settings)
    : clip_norm_(settings.clip_norm) {
  std::vector<torch::Tensor> decayed;
  std::vector<torch::Tensor> free;
  for (const auto& [name, tensor] : model.parameters()) {
    parameters_.push_back(tensor);
    (model.decays(name) ? decayed : free).push_back(tensor);
  }
  std::vector<torch::optim::OptimizerParamGroup> groups;
  const auto add_group = [&](std::vector<torch::Tensor> tensors, double weight_decay) {
    if (tensors.empty()) return;
    groups.emplace_back(std::move(tensors),
                        std::make_unique<AdamWOptions>(
                            AdamWOptions(settings.learning_rate).weight_decay(weight_decay)));
  };
  add_group(std::move(decayed), settings.weight_decay);
  add_group(std::move(free), 0.0);
  adamw_ = std::make_unique<torch::optim::AdamW>(groups, AdamWOptions(settings.learning_rate));
}

Optimizer::~Optimizer() = default;

void Optimizer::step() {
  clip_gradients(parameters_, clip_norm_);
  adamw_->step();
  // Gone, not zero: the next backward pass then hands its own tensors over instead of adding them.
  for (auto& parameter : parameters_) parameter.mutable_grad() = torch::Tensor();
}

void Optimizer::set_learning_rate(double rate) {
  for (auto& group : adamw_->param_groups()) {
    static_cast<AdamWOptions&>(group.options()).lr(rate);
  }
}

void Optimizer::save(torch::serialize::OutputArchive& archive) const { adamw_->save(archive); }

void Optimizer::load(torch::serialize::InputArchive& archive) { adamw_->load(archive); }

}  // namespace nas
