#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/gates.hpp"
#include "kernels/kernel_memory.hpp"

namespace nas::cuda {
namespace {

using kernels::GatedSum;
using kernels::GatedTerms;
using kernels::kGatedTerms;

constexpr std::int64_t kSize = 2503;  // more than a block, and no multiple of anything
constexpr std::int64_t kRows = 4;

/// Sums of all kinds: a copy, one gated term, two, three; those with gates have the rows of logits
/// in another order, and one has a row that it does not read.
Array<GatedSum> all_sums() {
  return {
      {{{{1.0F, 0.0F}}}, -1},
      {{{{0.0F, 1.0F}}}, 3},
      {{{{0.0F, 1.0F}, {}, {0.0F, -1.0F}}}, 2},
      {{{{0.0F, 1.0F}, {1.0F, -1.0F}, {0.5F, 0.25F}}}, 0},
      {{{{1.0F, 0.0F}}}, 1},
  };
}
constexpr std::int64_t kModels = 5;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double opened(const kernels::GateFactor& factor, double s) {
  return static_cast<double>(factor.constant) + static_cast<double>(factor.gated) * s;
}

template <class Real>
class GateKernels : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(GateKernels, Reals);

TYPED_TEST(GateKernels, SumAsTheFactorsSay) {
  using Real = TypeParam;
  const auto logits = random_numbers<Real>(kRows * kSize, 1, 3.0);
  const auto gradient = random_numbers<Real>(kModels * kSize, 2);
  const std::vector terms{random_numbers<Real>(kModels * kSize, 3),
                          random_numbers<Real>(kModels * kSize, 4),
                          random_numbers<Real>(kModels * kSize, 5)};
  auto out = unwritten<Real>(kModels * kSize);
  auto by_logits = unwritten<Real>(kRows * kSize);
  std::vector by_terms(kGatedTerms, unwritten<Real>(kModels * kSize));
  const auto of_models = all_sums();
  const GatedSums<Real> sums{of_models.data(),
                             kModels,
                             kSize,
                             logits.data(),
                             {terms[0].data(), terms[1].data(), terms[2].data()}};
  gated_sum(sums, out.data(), AtOnce());
  gated_sum_backward(sums, gradient.data(), by_logits.data(),
                     {by_terms[0].data(), by_terms[1].data(), by_terms[2].data()}, AtOnce());
  Array<Real> expected_out;
  std::vector<Array<Real>> expected_by_terms(kGatedTerms);
  auto expected_by_logits = unwritten<Real>(kRows * kSize);
  for (std::int64_t r = 0; r < kModels; ++r) {
    const auto& sum = of_models[static_cast<std::size_t>(r)];
    for (std::int64_t i = 0; i < kSize; ++i) {
      const auto at = static_cast<std::size_t>(r * kSize + i);
      const auto logit = static_cast<std::size_t>(sum.row * kSize + i);
      const double s = sum.row < 0 ? 0.0 : sigmoid(logits[logit]);
      double total = 0;
      double by_gate = 0;
      for (std::size_t t = 0; t < kGatedTerms; ++t) {
        total += opened(sum.factors[t], s) * terms[t][at];
        by_gate += static_cast<double>(sum.factors[t].gated) * terms[t][at];
        expected_by_terms[t].push_back(static_cast<Real>(gradient[at] * opened(sum.factors[t], s)));
      }
      expected_out.push_back(static_cast<Real>(total));
      if (sum.row >= 0) {
        expected_by_logits[logit] = static_cast<Real>(gradient[at] * by_gate * s * (1 - s));
      }
    }
  }
  expect_close(out, expected_out, "sums");
  expect_close(by_logits, expected_by_logits, "gradients by logits");
  for (std::size_t t = 0; t < kGatedTerms; ++t) {
    expect_close(by_terms[t], expected_by_terms[t], "gradients by term " + std::to_string(t));
  }
}

TYPED_TEST(GateKernels, ReadNothingInVain) {
  using Real = TypeParam;
  const auto x = random_numbers<Real>(2 * kSize, 1);
  const Array<GatedSum> copies(2, all_sums()[0]);
  auto out = unwritten<Real>(2 * kSize);
  const GatedSums<Real> sums{copies.data(), 2, kSize, nullptr, {x.data()}};
  gated_sum(sums, out.data(), AtOnce());
  EXPECT_EQ(out, x);
  auto by_x = unwritten<Real>(2 * kSize);
  gated_sum_backward(sums, x.data(), static_cast<Real*>(nullptr), GatedTerms<Real>{by_x.data()},
                     AtOnce());
  EXPECT_EQ(by_x, x);
}

}  // namespace
}  // namespace nas::cuda
