#include <cstddef>

#include <gtest/gtest.h>

#include "kernels/cross_entropy.hpp"
#include "kernels/cuda/cross_entropy.hpp"
#include "kernels/kernel_memory.hpp"

namespace nas::cuda {
namespace {

constexpr std::int64_t kModels = 2;
constexpr std::int64_t kRows = 9;
constexpr std::int64_t kVocabulary = 1001;

/// Random logits and targets; nothing is asked of one row of each model, of two of the second.
template <class Real>
struct Task {
  Array<Real> logits = random_numbers<Real>(kModels * kRows * kVocabulary, 1, 6.0);
  Array<std::int64_t> targets;
  Array<Real> weights{Real{1} / 8, Real{1} / 7};

  Task() {
    for (std::int64_t row = 0; row < kModels * kRows; ++row) {
      targets.push_back(row % kRows == 4 || row == 10 ? -100 : row * 331 % kVocabulary);
    }
  }
  template <class Logits>
  CrossEntropy<Logits> task() {
    return {logits.data(), targets.data(), kModels, kRows, kVocabulary};
  }
  Real* row(std::int64_t index) { return logits.data() + index * kVocabulary; }
};

template <class Real>
class CrossEntropyKernels : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(CrossEntropyKernels, Reals);

TYPED_TEST(CrossEntropyKernels, MakeTheCpusGradientInPlace) {
  using Real = TypeParam;
  Task<Real> ours;
  Task<Real> expected;
  auto nll = unwritten<double>(kModels * kRows);
  Array<double> expected_nll;
  cross_entropy_gradient(ours.template task<Real>(), ours.weights.data(), nll.data(), AtOnce());
  for (std::int64_t row = 0; row < kModels * kRows; ++row) {
    expected_nll.push_back(kernels::cross_entropy_gradient(
        expected.row(row), kVocabulary, expected.targets[static_cast<std::size_t>(row)],
        expected.weights[static_cast<std::size_t>(row / kRows)]));
  }
  expect_close(ours.logits, expected.logits, "gradient", tolerance<Real>() / 10);
  expect_close(nll, expected_nll, "nll", tolerance<Real>() / 10);
  EXPECT_EQ(nll[4], 0.0);
}

/// Of one, two, four and more numbers for each thread; 1001 above is no multiple of four.
TEST(CrossEntropyRows, MakeGradientsOfRowsThatRegistersHold) {
  for (const std::int64_t vocabulary : {4, 1000, 6000, 10000, 10244}) {
    auto logits = random_numbers<float>(3 * vocabulary, 1, 6.0);
    auto expected = logits;
    const Array<std::int64_t> targets{vocabulary - 1, -100, vocabulary / 2};
    const Array<float> weights{0.5F};
    auto nll = unwritten<double>(3);
    in_both_orders([&] {
      auto ours = logits;
      cross_entropy_gradient<float>({ours.data(), targets.data(), 1, 3, vocabulary}, weights.data(),
                                    nll.data(), AtOnce());
      expected = logits;
      for (std::size_t row = 0; row < 3; ++row) {
        const double of_row = kernels::cross_entropy_gradient(
            expected.data() + static_cast<std::int64_t>(row) * vocabulary, vocabulary, targets[row],
            0.5);
        // The fewer lanes the CPU's vectors have, the longer are its sums: 8e-6 with four.
        EXPECT_NEAR(nll[row], of_row, 3e-5) << vocabulary << ", " << row;
      }
      expect_close(ours, expected, "gradient", 2e-6);
    });
  }
}

TYPED_TEST(CrossEntropyKernels, MeanWeightsAndSumsMakeTheMeanLoss) {
  using Real = TypeParam;
  Task<Real> task;
  auto weights = unwritten<Real>(kModels);
  mean_weights(task.targets.data(), kModels, kRows, weights.data(), AtOnce());
  EXPECT_EQ(weights, task.weights);
  Array<double> nll;
  for (std::int64_t row = 0; row < kModels * kRows; ++row) nll.push_back(static_cast<double>(row));
  auto sums = unwritten<Real>(kModels);
  weighted_sums(nll.data(), kModels, kRows, weights.data(), sums.data(), AtOnce());
  expect_close(sums, {Real{36} / 8, Real{117} / 7}, "sums", tolerance<Real>() / 10);
}

TYPED_TEST(CrossEntropyKernels, ScoreAsTheCpuAndTakeTheFirstOfEqualLogits) {
  using Real = TypeParam;
  Task<Real> task;
  const auto set = [&](std::int64_t row, std::int64_t target, Array<std::int64_t> largest) {
    task.targets[static_cast<std::size_t>(row)] = target;
    for (const auto i : largest) task.row(row)[i] = 9;
  };
  set(0, 500, {500});       // correct
  set(1, 500, {500, 501});  // the first of two
  set(2, 501, {500, 501});  // the second of two
  auto nll = unwritten<double>(kModels * kRows);
  Array<std::byte> memory(kModels * kRows);  // a vector of bool has no array of them
  auto* correct = reinterpret_cast<bool*>(memory.data());
  in_both_orders([&] {
    cross_entropy<Real>(task.template task<const Real>(), nll.data(), correct, AtOnce());
    for (std::int64_t row = 0; row < kModels * kRows; ++row) {
      const auto expected = kernels::cross_entropy(task.row(row), kVocabulary,
                                                   task.targets[static_cast<std::size_t>(row)]);
      EXPECT_NEAR(nll[static_cast<std::size_t>(row)], expected.nll, tolerance<Real>()) << row;
      EXPECT_EQ(correct[row], expected.correct) << row;
    }
  });
  EXPECT_TRUE(correct[0] && correct[1] && !correct[2]);
}

TYPED_TEST(CrossEntropyKernels, ScaleModelsWhoseFactorIsNotOne) {
  using Real = TypeParam;
  auto x = random_numbers<Real>(2 * 5000, 1);
  const auto before = x;
  const Array<Real> factors{1, 2};
  scale_models(x.data(), 2, 5000, factors.data(), AtOnce());
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(x[i], before[i] * factors[i / 5000]) << i;
  }
}

TEST(CrossEntropyArray, ANaNStaysInItsModel) {
  Task<float> task;
  task.row(3)[7] = std::numeric_limits<float>::quiet_NaN();
  auto nll = unwritten<double>(kModels * kRows);
  cross_entropy_gradient(task.task<float>(), task.weights.data(), nll.data(), AtOnce());
  EXPECT_TRUE(std::isnan(nll[3])) << "a diverging training is noticed by it";
  for (std::int64_t row = kRows; row < 2 * kRows; ++row) {
    EXPECT_FALSE(std::isnan(nll[static_cast<std::size_t>(row)]));
  }
}

}  // namespace
}  // namespace nas::cuda
