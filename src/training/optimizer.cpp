#include "training/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <torch/serialize.h>

#include "kernels/adamw.hpp"
#include "ops/device_copy.hpp"
#include "ops/device_operations.hpp"

namespace nas {

namespace {

/// Elements of a piece.
constexpr std::int64_t kPieceSize = std::int64_t{1} << 14U;
/// Keeps the factor of a gradient of zeros finite.
constexpr double kSmallestNorm = 1e-6;

kernels::AdamWStep kernel_step(const ModelStep& step, double beta2) {
  kernels::AdamWStep given{.learning_rate = step.learning_rate, .weight_decay = step.weight_decay};
  given.beta2 = beta2;
  const auto t = static_cast<double>(step.step);
  given.first_correction = 1.0 - std::pow(given.beta1, t);
  given.second_correction = 1.0 - std::pow(given.beta2, t);
  return given;
}

/// NaN for a norm of NaN: then the whole model is NaN and cannot pass for a healthy one.
double clip_factor(double clip_norm, double norm) {
  return std::min(clip_norm / (norm + kSmallestNorm), 1.0);
}

/// Sizes are compared, since copy_() would repeat a smaller tensor.
void assign(const std::string& name, const torch::Tensor& state, const torch::Tensor& values) {
  TORCH_CHECK(values.sizes() == state.sizes(), name, " has sizes ", values.sizes(), ", must be ",
              state.sizes());
  state.copy_(values);
}

/// What AdamW keeps.
std::vector<std::pair<std::string, torch::Tensor>> moments(const torch::Tensor& parameter) {
  return {{"first_moment", at::zeros_like(parameter)},
          {"second_moment", at::zeros_like(parameter)}};
}

}  // namespace

Optimizer::Optimizer(const std::vector<nn::Parameter>& parameters, std::int64_t models,
                     const std::function<bool(const nn::Parameter&)>& decays, double beta2,
                     std::shared_ptr<const UpdateRule> rule,
                     const std::function<double(const nn::Parameter&)>& rates)
    : models_(models), beta2_(beta2), rule_(std::move(rule)) {
  for (const auto& given : parameters) {
    const auto& tensor = given.tensor;
    const auto slices = static_cast<std::int64_t>(given.models.size());
    TORCH_CHECK(tensor.is_contiguous() && tensor.dim() > 0 && tensor.size(0) == slices,
                "parameter ", given.name, " of ", slices, " models has sizes ", tensor.sizes(),
                ", must be contiguous with as many slices");
    for (const auto model : given.models) {
      TORCH_CHECK(model >= 0 && model < models, "parameter ", given.name, " belongs to model ",
                  model, ", must be in [0, ", models, ")");
    }
    for (std::int64_t slice = 0; slice < slices; ++slice) {
      const auto size = tensor.numel() / slices;
      for (std::int64_t begin = 0; begin < size; begin += kPieceSize) {
        const auto model = given.models[static_cast<std::size_t>(slice)];
        pieces_.push_back({entries_.size(), static_cast<std::size_t>(model), slice * size + begin,
                           std::min(kPieceSize, size - begin)});
      }
    }
    const auto index = at::tensor(given.models, at::TensorOptions(at::kLong)).to(tensor.device());
    auto& entry = entries_.emplace_back(
        Entry{given.name, tensor, {}, {}, given.models, index, decays(given), false});
    if (rates) entry.rate = rates(given);
    entry.by_rule = rule_ != nullptr && rule_->takes(given, entry.decays);
    for (auto& [name, state] : entry.by_rule ? rule_->states(tensor.detach()) : moments(tensor)) {
      entry.names.push_back(name);
      entry.states.push_back(std::move(state));
    }
  }
  if (entries_.empty() || rule_ != nullptr) return;
  TORCH_CHECK(!rates || entries_.front().parameter.device().is_cpu(), "rates of their own");
  const auto* device = nn::device_operations(entries_.front().parameter.device());
  if (device == nullptr) return;
  TORCH_CHECK(beta2 == kernels::AdamWStep{}.beta2, "beta2 = ", beta2, " on a device with kernels");
  std::vector<nn::TrainedParameter> trained;
  for (const auto& entry : entries_) {
    trained.push_back(
        {entry.parameter, entry.states[0], entry.states[1], entry.models, entry.decays});
  }
  kernels_ = device->adamw(std::move(trained), models);
}

void Optimizer::step(std::span<const ModelStep> steps) {
  TORCH_CHECK(static_cast<std::int64_t>(steps.size()) == models_, "an array of ", models_,
              " models was given ", steps.size(), " steps");
  if (entries_.empty()) return;
  const at::NoGradGuard no_grad;
  const auto& first = entries_.front().parameter;
  if (kernels_ != nullptr) {
    step_by_kernels(steps);
  } else if (first.device().is_cpu()) {
    AT_DISPATCH_FLOATING_TYPES(first.scalar_type(), "step_on_cpu",
                               [&] { step_on_cpu<scalar_t>(steps); });
  } else {
    step_by_operations(steps);
  }
  drop_gradients();
}

void Optimizer::step(const nn::DeviceSteps& steps) {
  TORCH_CHECK(kernels_ != nullptr, "there are no kernels where the parameters are");
  const at::NoGradGuard no_grad;
  kernels_->step(steps);
  drop_gradients();
}

void Optimizer::begin_recording(std::int64_t steps) { kernels_->begin_recording(steps); }

void Optimizer::end_recording(bool succeeded) {
  kernels_->end_recording(succeeded);
  drop_gradients();
}

void Optimizer::drop_gradients() {
  // Gone, not zero: the next backward pass then hands its own tensors over instead of adding them.
  for (auto& entry : entries_) entry.parameter.mutable_grad() = torch::Tensor();
}

template <class Real>
void Optimizer::step_on_cpu(std::span<const ModelStep> steps) {
  struct Arrays {
    Real* parameter;
    const Real* gradient;
    Real* first_moment;
    Real* second_moment;
  };
  std::vector<torch::Tensor> gradients;
  std::vector<Arrays> arrays;
  for (const auto& entry : entries_) {
    const auto& gradient = entry.parameter.grad();
    gradients.push_back(gradient.defined() ? gradient.contiguous() : gradient);
    arrays.push_back({entry.parameter.data_ptr<Real>(),
                      gradient.defined() ? gradients.back().data_ptr<Real>() : nullptr,
                      entry.states.front().data_ptr<Real>(), entry.states.back().data_ptr<Real>()});
  }
  const auto for_each_piece = [&](const auto& run) {
    at::parallel_for(
        0, static_cast<std::int64_t>(pieces_.size()), 1, [&](std::int64_t begin, std::int64_t end) {
          for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
            const auto& of_entry = arrays[pieces_[i].entry];
            if (of_entry.gradient != nullptr) run(i, of_entry);
          }
        });
  };

  std::vector<double> squares(pieces_.size(), 0.0);
  for_each_piece([&](std::size_t i, const Arrays& of_entry) {
    const auto& piece = pieces_[i];
    squares[i] = kernels::sum_of_squares(of_entry.gradient + piece.begin, piece.size);
  });
  std::vector<double> total(steps.size(), 0.0);
  for (std::size_t i = 0; i < pieces_.size(); ++i) total[pieces_[i].model] += squares[i];

  std::vector<kernels::AdamWStep> of_models;
  for (std::size_t model = 0; model < steps.size(); ++model) {
    of_models.push_back(kernel_step(steps[model], beta2_));
    of_models.back().gradient_factor = clip_factor(steps[model].clip_norm, std::sqrt(total[model]));
  }
  for_each_piece([&](std::size_t i, const Arrays& of_entry) {
    const auto& piece = pieces_[i];
    auto step = of_models[piece.model];
    if (entries_[piece.entry].by_rule) return;
    if (!entries_[piece.entry].decays) step.weight_decay = 0.0;
    step.learning_rate *= entries_[piece.entry].rate;
    kernels::adamw(of_entry.parameter + piece.begin, of_entry.gradient + piece.begin,
                   of_entry.first_moment + piece.begin, of_entry.second_moment + piece.begin,
                   piece.size, step);
  });
  for (std::size_t e = 0; e < entries_.size(); ++e) {
    auto& entry = entries_[e];
    if (!entry.by_rule || !gradients[e].defined()) continue;
    auto clipped = at::empty_like(gradients[e]);
    for (std::size_t i = 0; i < entry.models.size(); ++i) {
      const auto slice = static_cast<std::int64_t>(i);
      const auto factor = of_models[static_cast<std::size_t>(entry.models[i])].gradient_factor;
      clipped[slice].copy_(gradients[e][slice].mul(factor));
    }
    step_by_rule(entry, clipped, steps);
  }
}

void Optimizer::step_by_rule(Entry& entry, const torch::Tensor& gradient,
                             std::span<const ModelStep> steps) {
  std::vector<ModelStep> own;
  for (const auto model : entry.models) {
    own.push_back(steps[static_cast<std::size_t>(model)]);
    if (!entry.decays) own.back().weight_decay = 0.0;
    own.back().learning_rate *= entry.rate;
  }
  rule_->step(entry.parameter.detach(), gradient, entry.states, own);
}

void Optimizer::step_by_kernels(std::span<const ModelStep> steps) {
  auto numbers = at::empty({3, models_}, at::TensorOptions(at::kDouble));
  auto done = at::empty({models_}, at::TensorOptions(at::kLong));
  for (std::int64_t model = 0; model < models_; ++model) {
    const auto& step = steps[static_cast<std::size_t>(model)];
    auto* of_model = numbers.data_ptr<double>() + model;
    of_model[0] = step.learning_rate;
    of_model[models_] = step.weight_decay;
    of_model[2 * models_] = step.clip_norm;
    done.data_ptr<std::int64_t>()[model] = step.step - 1;
  }
  const auto device = entries_.front().parameter.device();
  const auto there = nn::sent(numbers, device);
  kernels_->step({there[0], there[1], there[2], nn::sent(done, device)});
}

void Optimizer::step_by_operations(std::span<const ModelStep> steps) {
  const auto options = entries_.front().parameter.options().requires_grad(false);
  // One row per model: computed in double, copied once.
  enum Column : std::int64_t { kKept, kRate, kRootFactor, kClipNorm, kColumns };
  auto host = at::empty({models_, kColumns}, at::TensorOptions(at::kDouble));
  for (std::int64_t model = 0; model < models_; ++model) {
    const auto& given = steps[static_cast<std::size_t>(model)];
    const auto step = kernel_step(given, beta2_);
    auto* row = host.data_ptr<double>() + model * kColumns;
    row[kKept] = 1.0 - given.learning_rate * given.weight_decay;
    row[kRate] = given.learning_rate / step.first_correction;
    row[kRootFactor] = 1.0 / std::sqrt(step.second_correction);
    row[kClipNorm] = given.clip_norm;
  }
  const auto numbers_there = host.to(options.device(), /*non_blocking=*/true);
  const auto columns = numbers_there.to(options.dtype());

  // In double, as the kernels: the square of a finite gradient of 1e30 is none in float32.
  auto squares = at::zeros({models_}, numbers_there.options());
  for (const auto& entry : entries_) {
    const auto& gradient = entry.parameter.grad();
    if (!gradient.defined()) continue;
    squares.index_add_(0, entry.model_index,
                       gradient.to(at::kDouble).square().reshape({gradient.size(0), -1}).sum(1));
  }
  const auto factors = (numbers_there.select(1, kClipNorm) / (squares.sqrt() + kSmallestNorm))
                           .clamp_max(1.0)
                           .to(options.dtype());

  const kernels::AdamWStep constants{.beta2 = beta2_};
  for (auto& entry : entries_) {
    if (!entry.parameter.grad().defined()) continue;
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(entry.parameter.dim()), 1);
    sizes.front() = entry.parameter.size(0);
    const auto of_models = [&](const torch::Tensor& numbers) {
      return numbers.index_select(0, entry.model_index).view(sizes);
    };
    const auto gradient = entry.parameter.grad() * of_models(factors);
    if (entry.by_rule) {
      step_by_rule(entry, gradient, steps);
      continue;
    }
    auto &first = entry.states[0], &second = entry.states[1];
    first.mul_(constants.beta1).add_(gradient, 1.0 - constants.beta1);
    second.mul_(constants.beta2).addcmul_(gradient, gradient, 1.0 - constants.beta2);
    const auto root =
        second.sqrt().mul_(of_models(columns.select(1, kRootFactor))).add_(constants.epsilon);
    if (entry.decays) entry.parameter.mul_(of_models(columns.select(1, kKept)));
    entry.parameter.sub_(first.div(root).mul_(of_models(columns.select(1, kRate))));
  }
}

std::map<std::string, torch::Tensor> Optimizer::states_of(std::int64_t model) const {
  std::map<std::string, torch::Tensor> by_name;
  for (const auto& entry : entries_) {
    const auto found = std::find(entry.models.begin(), entry.models.end(), model);
    if (found == entry.models.end()) continue;
    for (std::size_t i = 0; i < entry.names.size(); ++i)
      by_name[entry.name + "." + entry.names[i]] = entry.states[i][found - entry.models.begin()];
  }
  return by_name;
}

void Optimizer::save(torch::serialize::OutputArchive& archive, std::int64_t model) const {
  // Copies: a slice would be written with the whole array.
  for (const auto& [name, state] : states_of(model)) archive.write(name, state.clone());
}

void Optimizer::load(torch::serialize::InputArchive& archive, std::int64_t model) {
  for (const auto& [name, state] : states_of(model)) {
    torch::Tensor saved;
    archive.read(name, saved);
    assign(name, state, saved);
  }
}

void Optimizer::take(const Optimizer& other, std::int64_t from, std::int64_t to) {
  const auto given = other.states_of(from);
  for (const auto& [name, state] : states_of(to)) {
    const auto found = given.find(name);
    TORCH_CHECK(found != given.end(), "model ", from, " has no ", name, " that model ", to,
                " could take");
    assign(name, state, found->second);
  }
}

bool maps_hidden_vectors(const nn::Parameter& parameter, bool decays) {
  return decays && parameter.tensor.dim() == 3 && parameter.name.starts_with("layers.") &&
         parameter.name.find("_conv.") == std::string::npos;
}

}  // namespace nas
