// Models on a CUDA device against those on the CPU; skipped where there is no device.

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "array_step.hpp"
#include "gradients.hpp"
#include "instruments/environment.hpp"
#include "ops/device_operations.hpp"
#include "ops/device_stream.hpp"
#include "small_corpus.hpp"
#include "training/array_steps.hpp"

namespace nas::nn {
namespace {

using test::From;
using test::step_of;

class CudaDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "there is no CUDA device";
    if (device_operations(torch::kCUDA) == nullptr) GTEST_SKIP() << "there are no CUDA kernels";
  }
};

void expect_close(const torch::Tensor& ours, const torch::Tensor& expected, double tolerance,
                  const std::string& what) {
  const double largest = std::max(expected.abs().max().item<double>(), 1.0);
  EXPECT_LE((ours - expected).abs().max().item<double>(), tolerance * largest) << what;
}

/// Models 0, 1, ... of `all`.
std::vector<std::size_t> places_of(const std::vector<Architecture>& all) {
  std::vector<std::size_t> places(all.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  return places;
}

/// A step in precision `type` is that of the CPU in double precision.
void expect_step_of_the_cpu(const std::vector<Architecture>& all, torch::ScalarType type) {
  const auto places = places_of(all);
  const auto truth = step_of(all, places, at::kDouble, at::kCPU, From::spread);
  const auto ours = step_of(all, places, type, torch::kCUDA, From::spread);
  const double tolerance = type == at::kDouble ? 1e-10 : 1e-4;
  expect_close(ours.losses.to(at::kDouble), truth.losses, tolerance, "losses");
  expect_close(ours.nll, truth.nll, tolerance, "scores");
  for (const auto place : places) {
    test::expect_gradients(ours.gradients[place], truth.gradients[place], truth.gradients[place],
                           type, to_string(all[place].stack.front()));
  }
}

/// The sizes of the paper.
std::vector<Architecture> large_models() {
  auto models = test::various_models();
  for (auto& model : models) {
    const auto stack = model.stack;
    model = Architecture();
    model.stack = stack;
    model.context = 128;
    model.vocabulary = 10000;
  }
  return models;
}

TEST_F(CudaDevice, ComputesTheStepOfTheCpu) {
  expect_step_of_the_cpu(large_models(), at::kDouble);
  expect_step_of_the_cpu(large_models(), at::kFloat);
}

TEST_F(CudaDevice, ComputesTheGradientsOfAllPairsOfOptions) {
  for (const std::int64_t context : {37, 128}) {
    for (const auto type : {at::kDouble, at::kFloat}) {
      for (const auto& models : test::by_fused_form(test::models_of_all_pairs(context))) {
        expect_step_of_the_cpu(models, type);
      }
    }
  }
}

TEST_F(CudaDevice, ComputesAnArrayOfThreeAsEachAlone) {
  const auto all = large_models();
  const std::vector<std::size_t> places{1, 2, 5};
  const auto truth = step_of(all, places, at::kDouble, at::kCPU, From::spread);
  const auto together = step_of(all, places, at::kFloat, torch::kCUDA, From::spread);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto alone = step_of(all, {places[i]}, at::kFloat, torch::kCUDA, From::spread);
    const auto what = to_string(all[places[i]].stack.front());
    expect_close(together.losses[static_cast<std::int64_t>(i)], alone.losses[0], 1e-5, what);
    test::expect_gradients(together.gradients[i], alone.gradients[0], truth.gradients[i],
                           at::kFloat, what);
  }
}

TEST_F(CudaDevice, RepeatsAStep) {
  const auto all = large_models();
  const std::vector<std::size_t> places{0, 3, 4};
  const auto once = step_of(all, places, at::kFloat, torch::kCUDA);
  const auto again = step_of(all, places, at::kFloat, torch::kCUDA);
  EXPECT_TRUE(again.losses.equal(once.losses));
  EXPECT_TRUE(again.nll.equal(once.nll));
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (const auto& [name, gradient] : once.gradients[i]) {
      EXPECT_TRUE(again.gradients[i].at(name).equal(gradient))
          << to_string(all[places[i]].stack.front()) << " " << name;
    }
  }
}

/// Of models that read the same windows: losses of 25 steps, and the parameters before and after
/// them, by model and name.
struct Trained {
  torch::Tensor losses;
  std::vector<std::map<std::string, torch::Tensor>> before, after;
  std::int64_t most_at_once = 0;
};

Trained trained(bool record) {
  const OwnStream stream(torch::kCUDA);
  const auto architectures = large_models();
  const auto count = std::ssize(architectures);
  const auto corpus = nas::test::counting_corpus(10000, 128, 64);
  TransformerArray models(architectures, NumericalMode::exact, torch::kCUDA);
  models.initialise(std::vector<StartSeed>(architectures.size()));
  test::spread(models, places_of(architectures));
  const auto values = [&] {
    std::vector<std::map<std::string, torch::Tensor>> of_models(architectures.size());
    for (const auto& parameter : models.parameters()) {
      const auto tensor = parameter.tensor.detach().to(at::kCPU, at::kDouble);
      for (std::size_t i = 0; i < parameter.models.size(); ++i) {
        of_models[static_cast<std::size_t>(parameter.models[i])][parameter.name] =
            tensor[static_cast<std::int64_t>(i)].clone();
      }
    }
    return of_models;
  };
  Trained result{.losses = {}, .before = values(), .after = {}};
  Optimizer optimizer(models.parameters(), count,
                      [&](const Parameter& parameter) { return models.decays(parameter); });
  const auto losses = at::zeros({count}, at::TensorOptions(at::kDouble).device(torch::kCUDA));
  const auto steps = array_steps(models, optimizer, corpus.train, {.batch = 8}, losses, record);
  std::vector<Course> courses;
  for (std::int64_t r = 0; r < count; ++r) {
    courses.push_back({.order = TrainingOrder(corpus.train, 8, 1, r),
                       .run_seed = 1,
                       .replicate = r,
                       .update = [](std::int64_t step) { return ModelStep{.step = step}; }});
  }
  std::vector<Course*> all;
  for (auto& course : courses) all.push_back(&course);
  for (std::int64_t left = 25; left > 0;) {
    const auto taken = steps->take(all, left);
    result.most_at_once = std::max(result.most_at_once, taken);
    left -= taken;
  }
  result.losses = losses.cpu();
  result.after = values();
  return result;
}

/// AdamW makes a step of every gradient, however small: parameters whose true gradient is 0 follow
/// its rounding, which another algorithm of cuBLAS changes, and are left out.
TEST_F(CudaDevice, TakesRecordedStepsLikeOthers) {
  const auto all = large_models();
  const auto truth = step_of(all, places_of(all), at::kDouble, at::kCPU, From::spread);
  const auto expected = trained(/*record=*/false);
  ::testing::internal::CaptureStderr();
  const auto ours = trained(/*record=*/true);
  const auto said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("steps cannot be recorded"), std::string::npos) << said;
  EXPECT_EQ(expected.most_at_once, 1);
  EXPECT_GT(ours.most_at_once, 1);
  expect_close(ours.losses, expected.losses, 1e-4, "losses");
  for (std::size_t r = 0; r < all.size(); ++r) {
    for (const auto& name : test::with_gradient(truth.gradients[r])) {
      const auto moved = expected.after[r].at(name) - expected.before[r].at(name);
      const auto apart = ours.after[r].at(name) - expected.after[r].at(name);
      EXPECT_LE(apart.norm().item<double>() / moved.norm().item<double>(), 1e-2)
          << to_string(all[r].stack.front()) << " " << name;
    }
  }
}

/// What evaluation.determinism = bitwise promises of a process that ends and goes on.
TEST_F(CudaDevice, TakesRecordedStepsBitwise) {
  require_determinism(NumericalMode::exact, "cuda:0");
  const auto expected = trained(/*record=*/false);
  const auto ours = trained(/*record=*/true);
  EXPECT_TRUE(at::equal(ours.losses, expected.losses));
  for (std::size_t r = 0; r < expected.after.size(); ++r) {
    for (const auto& [name, values] : expected.after[r]) {
      EXPECT_TRUE(at::equal(ours.after[r].at(name), values)) << r << " " << name;
    }
  }
  at::globalContext().setDeterministicAlgorithms(false, false);
}

}  // namespace
}  // namespace nas::nn
