// Models on a CUDA device against those on the CPU; skipped where there is no device.

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "array_step.hpp"
#include "nn/device_operations.hpp"
#include "nn/device_stream.hpp"
#include "small_corpus.hpp"
#include "training/array_steps.hpp"

namespace nas::nn {
namespace {

using test::Step;
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

void expect_close(const Step& ours, std::size_t place, const Step& expected,
                  std::size_t expected_place, double tolerance, const std::string& what) {
  const auto r = static_cast<std::int64_t>(place);
  const auto e = static_cast<std::int64_t>(expected_place);
  expect_close(ours.losses[r], expected.losses[e], tolerance, what + " loss");
  expect_close(ours.nll[r], expected.nll[e], tolerance, what + " scores");
  for (const auto& [name, gradient] : expected.gradients[expected_place]) {
    expect_close(ours.gradients[place].at(name), gradient, tolerance, what + " " + name);
  }
}

/// The sizes of the paper.
std::vector<Architecture> large_models() {
  auto models = test::various_models();
  for (auto& model : models) {
    const auto mechanism = model.mechanism;
    model = Architecture();
    model.mechanism = mechanism;
    model.context = 128;
    model.vocabulary = 10000;
  }
  return models;
}

TEST_F(CudaDevice, ComputesTheStepOfTheCpu) {
  const auto all = large_models();
  const std::vector<std::size_t> places{0, 1, 2, 3, 4, 5, 6, 7};
  const auto expected = step_of(all, places, at::kFloat);
  const auto ours = step_of(all, places, at::kFloat, torch::kCUDA);
  for (const auto place : places) {
    expect_close(ours, place, expected, place, 1e-4, to_string(all[place].mechanism));
  }
}

TEST_F(CudaDevice, ComputesAnArrayOfThreeAsEachAlone) {
  const auto all = large_models();
  const std::vector<std::size_t> places{1, 2, 5};
  const auto together = step_of(all, places, at::kFloat, torch::kCUDA);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto alone = step_of(all, {places[i]}, at::kFloat, torch::kCUDA);
    expect_close(together, i, alone, 0, 1e-5, to_string(all[places[i]].mechanism));
  }
}

TEST_F(CudaDevice, RepeatsAStep) {
  const auto all = large_models();
  const std::vector<std::size_t> places{0, 3, 4};
  const auto once = step_of(all, places, at::kFloat, torch::kCUDA);
  const auto again = step_of(all, places, at::kFloat, torch::kCUDA);
  for (std::size_t i = 0; i < places.size(); ++i) {
    expect_close(again, i, once, i, 0.0, to_string(all[places[i]].mechanism));
  }
}

/// Losses of 25 steps and the parameters after them, of models that read the same windows.
std::vector<torch::Tensor> trained(bool record) {
  const OwnStream stream(torch::kCUDA);
  const auto architectures = large_models();
  const auto count = static_cast<std::int64_t>(architectures.size());
  const auto corpus = nas::test::counting_corpus(10000, 128, 64);
  TransformerArray models(architectures, NumericalMode::exact, torch::kCUDA);
  models.initialise(std::vector<StartSeed>(architectures.size()));
  Optimizer optimizer(models.parameters(), count,
                      [&](const Parameter& parameter) { return models.decays(parameter); });
  const auto losses = at::zeros({count}, at::TensorOptions(at::kDouble).device(torch::kCUDA));
  const auto steps = array_steps(models, optimizer, corpus.train, 8, losses, record);
  std::vector<Course> courses;
  for (std::int64_t r = 0; r < count; ++r) {
    courses.push_back({.order = TrainingOrder(corpus.train, 8, 1, r),
                       .run_seed = 1,
                       .replicate = r,
                       .update = [](std::int64_t step) { return ModelStep{.step = step}; }});
  }
  std::vector<Course*> all;
  for (auto& course : courses) all.push_back(&course);
  for (std::int64_t left = 25; left > 0;) left -= steps->take(all, left);
  std::vector<torch::Tensor> results{losses.cpu()};
  for (const auto& parameter : models.parameters()) {
    results.push_back(parameter.tensor.detach().cpu());
  }
  return results;
}

TEST_F(CudaDevice, TakesRecordedStepsLikeOthers) {
  const auto expected = trained(/*record=*/false);
  ::testing::internal::CaptureStderr();
  const auto ours = trained(/*record=*/true);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");  // nor that they cannot be recorded
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expect_close(ours[i], expected[i], 1e-5, "result " + std::to_string(i));
  }
}

}  // namespace
}  // namespace nas::nn
