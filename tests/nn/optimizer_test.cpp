#include "training/optimizer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/optim/adamw.h>
#include <torch/serialize.h>

#include "core/seed.hpp"
#include "ops/torch_compat.hpp"

namespace nas {
namespace {

using Models = std::vector<std::int64_t>;
constexpr int kSteps = 20;

/// Numbers of one model's parameter, or of its gradient in a step, in any array.
torch::Tensor draw(const std::vector<std::int64_t>& shape, const std::string& name,
                   std::int64_t model, int step) {
  const auto generator = nn::make_generator(at::kCPU, derive_seed(7, model, name, step));
  return at::randn(shape, generator, at::TensorOptions(at::kDouble));
}

/// What a model's gradients are multiplied by: some are clipped, some are not.
double gradient_scale(std::int64_t model, int step) {
  return model == 1 ? 1e-4 : 1.0 / static_cast<double>(step);
}

/// Some of models 0, 1, 2 as an array, with parameters of one piece and more, of all and of some of
/// the models, and of one name twice.
class Array {
 public:
  explicit Array(const Models& models, at::ScalarType type = at::kFloat) : models_(models) {
    const std::array<Models, 5> owners{Models{0, 1, 2}, Models{0, 1, 2}, Models{0, 2}, Models{1},
                                       Models{0, 1, 2}};
    add("matrix", {300, 70}, owners[0], nn::Decay::yes, type);
    add("bias", {33}, owners[1], nn::Decay::no, type);
    add("option", {40, 3}, owners[2], nn::Decay::yes, type);
    add("option", {5}, owners[3], nn::Decay::no, type);
    add("scalar", {}, owners[4], nn::Decay::no, type);
  }

  [[nodiscard]] Optimizer optimizer() const {
    return Optimizer(
        parameters, static_cast<std::int64_t>(models_.size()),
        [](const nn::Parameter& parameter) { return parameter.decay == nn::Decay::yes; });
  }

  /// Gives all parameters the gradients of a step.
  void set_gradients(int step) {
    for (auto& parameter : parameters) {
      parameter.tensor.mutable_grad() = of_all(parameter, step).to(parameter.tensor.options());
    }
  }

  void take_steps(Optimizer& optimizer, int first, int last) {
    for (int step = first; step <= last; ++step) {
      set_gradients(step);
      optimizer.step(model_steps(step));
    }
  }

  /// Warm-up to another rate, and another weight decay and clip norm, in each model.
  [[nodiscard]] std::vector<ModelStep> model_steps(int step) const {
    std::vector<ModelStep> steps;
    for (const auto model : models_) {
      const auto r = static_cast<double>(model);
      steps.push_back({.step = step,
                       .learning_rate = 1e-3 * (r + 1.0) * std::min(1.0, step / 5.0),
                       .weight_decay = 0.1 * r,
                       .clip_norm = 1.0 + r});
    }
    return steps;
  }

  /// A model's parameters, under their names in the order of the array.
  [[nodiscard]] std::vector<std::pair<std::string, torch::Tensor>> of_model(
      std::int64_t model) const {
    std::vector<std::pair<std::string, torch::Tensor>> named;
    for (const auto& parameter : parameters) {
      for (std::size_t i = 0; i < parameter.models.size(); ++i) {
        if (models_[static_cast<std::size_t>(parameter.models[i])] != model) continue;
        named.emplace_back(parameter.name, parameter.tensor.detach()[static_cast<std::int64_t>(i)]);
      }
    }
    return named;
  }

  std::vector<nn::Parameter> parameters;

 private:
  void add(const std::string& name, const std::vector<std::int64_t>& shape, const Models& owners,
           nn::Decay decay, at::ScalarType type) {
    nn::Parameter parameter{name, {}, {}, {}, decay};
    for (std::size_t i = 0; i < models_.size(); ++i) {
      if (std::find(owners.begin(), owners.end(), models_[i]) != owners.end()) {
        parameter.models.push_back(static_cast<std::int64_t>(i));
      }
    }
    if (parameter.models.empty()) return;
    shapes_.push_back(shape);
    parameters.push_back(parameter);
    parameters.back().tensor = of_all(parameters.back(), 0).to(type).requires_grad_(true);
  }

  [[nodiscard]] torch::Tensor of_all(const nn::Parameter& parameter, int step) const {
    std::vector<torch::Tensor> slices;
    const auto& shape = shapes_[static_cast<std::size_t>(&parameter - parameters.data())];
    for (const auto index : parameter.models) {
      const auto model = models_[static_cast<std::size_t>(index)];
      const double scale = step == 0 ? 1.0 : gradient_scale(model, step);
      slices.push_back(draw(shape, parameter.name, model, step) * scale);
    }
    return at::stack(slices);
  }

  Models models_;
  std::vector<std::vector<std::int64_t>> shapes_;
};

void expect_equal(const Array& actual, const Array& expected, std::int64_t model) {
  const auto theirs = expected.of_model(model);
  const auto ours = actual.of_model(model);
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].first, theirs[i].first);
    EXPECT_TRUE(ours[i].second.equal(theirs[i].second))
        << "model " << model << ", " << ours[i].first;
  }
}

/// LibTorch's AdamW with clipping on one model alone.
class LibTorchTraining {
 public:
  LibTorchTraining(std::int64_t model, at::ScalarType type) : array_({model}, type) {
    std::vector<torch::Tensor> decayed;
    std::vector<torch::Tensor> others;
    for (auto& parameter : array_.parameters) {
      (parameter.decay == nn::Decay::yes ? decayed : others).push_back(parameter.tensor);
    }
    adamw_ = std::make_unique<torch::optim::AdamW>(
        std::vector<torch::optim::OptimizerParamGroup>{decayed, others});
  }

  void step(int step) {
    array_.set_gradients(step);
    auto squares = 0.0;
    for (const auto& parameter : array_.parameters) {
      squares += parameter.tensor.grad().to(at::kDouble).square().sum().item<double>();
    }
    const auto given = array_.model_steps(step).front();
    const double factor = std::min(1.0, given.clip_norm / (std::sqrt(squares) + 1e-6));
    clipped_ = clipped_ || factor < 1.0;
    for (auto& parameter : array_.parameters) parameter.tensor.mutable_grad().mul_(factor);
    for (std::size_t group = 0; group < 2; ++group) {
      auto& options =
          static_cast<torch::optim::AdamWOptions&>(adamw_->param_groups()[group].options());
      options.lr(given.learning_rate).weight_decay(group == 0 ? given.weight_decay : 0.0);
    }
    adamw_->step();
  }

  [[nodiscard]] const Array& array() const { return array_; }
  [[nodiscard]] bool clipped() const { return clipped_; }

 private:
  Array array_;
  std::unique_ptr<torch::optim::AdamW> adamw_;
  bool clipped_ = false;
};

TEST(Optimizer, EqualsLibTorchsAdamWInEachModel) {
  for (const auto& [type, tolerance] : {std::pair{at::kFloat, 1e-6}, {at::kDouble, 1e-12}}) {
    Array array({0, 1, 2}, type);
    auto optimizer = array.optimizer();
    array.take_steps(optimizer, 1, kSteps);
    for (const std::int64_t model : {0, 1, 2}) {
      LibTorchTraining alone(model, type);
      for (int step = 1; step <= kSteps; ++step) alone.step(step);
      EXPECT_EQ(alone.clipped(), model != 1);
      const auto actual = array.of_model(model);
      const auto expected = alone.array().of_model(model);
      ASSERT_EQ(actual.size(), expected.size());
      for (std::size_t i = 0; i < actual.size(); ++i) {
        const auto error = (actual[i].second - expected[i].second).abs().max().item<double>();
        EXPECT_LE(error, tolerance * expected[i].second.abs().max().item<double>())
            << type << ", model " << model << ", " << actual[i].first;
      }
    }
  }
}

TEST(Optimizer, AModelDoesNotDependOnItsMates) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    Array array({0, 1, 2}, type);
    auto optimizer = array.optimizer();
    array.take_steps(optimizer, 1, kSteps);
    for (const std::int64_t model : {0, 1, 2}) {
      Array alone({model}, type);
      auto own = alone.optimizer();
      alone.take_steps(own, 1, kSteps);
      expect_equal(array, alone, model);
    }
  }
}

TEST(Optimizer, DoesNotDependOnTheNumberOfThreads) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  Array one({0, 1, 2});
  auto optimizer_of_one = one.optimizer();
  one.take_steps(optimizer_of_one, 1, 5);
  at::set_num_threads(2);
  Array two({0, 1, 2});
  auto optimizer_of_two = two.optimizer();
  two.take_steps(optimizer_of_two, 1, 5);
  at::set_num_threads(before);
  for (const std::int64_t model : {0, 1, 2}) expect_equal(two, one, model);
}

TEST(Optimizer, ADivergedMatePoisonsNobody) {
  for (const auto bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Array clean({0, 1, 2});
    auto expected = clean.optimizer();
    Array array({0, 1, 2});
    auto optimizer = array.optimizer();
    for (int step = 1; step <= 5; ++step) {
      clean.take_steps(expected, step, step);
      array.set_gradients(step);
      if (step == 3) array.parameters[0].tensor.mutable_grad()[1][7][3] = bad;
      optimizer.step(array.model_steps(step));
    }
    expect_equal(array, clean, 0);
    expect_equal(array, clean, 2);
    EXPECT_TRUE(array.parameters[0].tensor.detach()[1].isnan().any().item<bool>());
    if (std::isinf(bad)) continue;  // else the norm is NaN, and all that it divides
    for (const auto& [name, tensor] : array.of_model(1)) {
      EXPECT_TRUE(tensor.isnan().all().item<bool>()) << name;
    }
  }
}

TEST(Optimizer, ModelsMayStandAtDifferentSteps) {
  Array ahead({0});
  auto optimizer_ahead = ahead.optimizer();
  ahead.take_steps(optimizer_ahead, 1, 6);
  Array fresh({2});
  auto optimizer_fresh = fresh.optimizer();

  Array both({0, 2});
  auto optimizer = both.optimizer();
  both.set_gradients(7);
  // Model 0 goes on at step 7; model 2 begins, with the same gradients at step 1.
  {
    const at::NoGradGuard no_grad;
    for (auto& [name, tensor] : both.of_model(0)) {
      for (const auto& [other, values] : ahead.of_model(0)) {
        if (name == other) tensor.copy_(values);
      }
    }
  }
  optimizer.take(optimizer_ahead, 0, 0);
  const std::vector<ModelStep> steps{both.model_steps(7)[0], both.model_steps(1)[1]};
  optimizer.step(steps);

  ahead.take_steps(optimizer_ahead, 7, 7);
  fresh.set_gradients(7);
  optimizer_fresh.step(fresh.model_steps(1));
  expect_equal(both, ahead, 0);
  expect_equal(both, fresh, 2);
}

TEST(Optimizer, UsesUpGradientsAndSkipsParametersWithoutOne) {
  Array array({0, 1, 2});
  auto optimizer = array.optimizer();
  array.take_steps(optimizer, 1, 1);
  for (const auto& parameter : array.parameters) {
    EXPECT_FALSE(parameter.tensor.grad().defined()) << parameter.name;
  }
  // As if there were no bias: it neither moves nor counts in the norm.
  Array missing({0, 1, 2});
  auto optimizer_of_missing = missing.optimizer();
  missing.set_gradients(1);
  const auto bias = missing.parameters[1].tensor;
  bias.mutable_grad() = torch::Tensor();
  const auto bias_before = bias.detach().clone();
  Array less({0, 1, 2});
  less.set_gradients(1);
  less.parameters.erase(less.parameters.begin() + 1);
  auto optimizer_of_less = less.optimizer();
  optimizer_of_missing.step(missing.model_steps(1));
  optimizer_of_less.step(less.model_steps(1));
  EXPECT_TRUE(bias.equal(bias_before));
  missing.parameters.erase(missing.parameters.begin() + 1);
  for (const std::int64_t model : {0, 1, 2}) expect_equal(missing, less, model);
}

/// A model of an array of its own, from where it stands in another one.
Array alone_from(const Array& array, std::int64_t model) {
  const at::NoGradGuard no_grad;
  Array alone({model});
  const auto values = array.of_model(model);
  auto own = alone.of_model(model);
  for (std::size_t i = 0; i < own.size(); ++i) own[i].second.copy_(values[i].second);
  return alone;
}

TEST(Optimizer, ASavedModelGoesOnByItself) {
  Array array({0, 1, 2});
  auto optimizer = array.optimizer();
  array.take_steps(optimizer, 1, 5);
  for (const std::int64_t model : {0, 1, 2}) {
    std::stringstream file;
    torch::serialize::OutputArchive out;
    optimizer.save(out, model);
    out.save_to(file);
    EXPECT_LT(file.str().size(), 2 * 4 * 22000 + 20000);  // two moments of one model

    auto alone = alone_from(array, model);
    auto own = alone.optimizer();
    torch::serialize::InputArchive in;
    in.load_from(file);
    own.load(in, 0);
    auto taken = alone_from(array, model);
    auto optimizer_of_taken = taken.optimizer();
    optimizer_of_taken.take(optimizer, model, 0);

    // The same trainings, never interrupted.
    Array whole({0, 1, 2});
    auto uninterrupted = whole.optimizer();
    whole.take_steps(uninterrupted, 1, 10);
    alone.take_steps(own, 6, 10);
    taken.take_steps(optimizer_of_taken, 6, 10);
    expect_equal(alone, whole, model);
    expect_equal(taken, whole, model);
  }
}

TEST(Optimizer, ADeviceStepsLikeTheProcessor) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no CUDA device";
  Array array({0, 1, 2});
  Array on_device({0, 1, 2});
  nn::move_to(on_device.parameters, at::kCUDA, at::kFloat);
  auto expected = array.optimizer();
  auto optimizer = on_device.optimizer();
  array.take_steps(expected, 1, kSteps);
  on_device.take_steps(optimizer, 1, kSteps);
  for (std::size_t i = 0; i < array.parameters.size(); ++i) {
    EXPECT_TRUE(
        on_device.parameters[i].tensor.cpu().allclose(array.parameters[i].tensor, 1e-5, 1e-6))
        << array.parameters[i].name;
  }
}

}  // namespace
}  // namespace nas
