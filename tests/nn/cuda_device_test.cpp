// Models on a CUDA device against those on the CPU; skipped where there is no device.

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "array_step.hpp"
#include "nn/device_operations.hpp"

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

}  // namespace
}  // namespace nas::nn
