#include "kernels/adamw.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/instruction_set.hpp"

namespace nas::kernels {
namespace {

/// Numbers of both signs, another sequence for each `phase`.
template <class Real>
std::vector<Real> waves(std::size_t size, double phase) {
  std::vector<Real> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = static_cast<Real>(std::sin(phase + 1.7 * static_cast<double>(i)));
  }
  return values;
}

/// Calls check(size) with the kernels of every instruction set that this processor has, for whole
/// and partial vectors.
template <class Check>
void for_every_set_and_size(const Check& check) {
  const auto all = instruction_sets();
  ASSERT_FALSE(all.empty());
  for (const auto& name : all) {
    use_instruction_set(name);
    for (std::size_t size = 0; size <= 70; ++size) {
      SCOPED_TRACE(name + ", size " + std::to_string(size));
      check(size);
    }
  }
  use_instruction_set(all.front());
}

template <class Real>
class AdamWOf : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(AdamWOf, Reals);

TYPED_TEST(AdamWOf, SumsSquaresInDouble) {
  for_every_set_and_size([](std::size_t size) {
    const auto x = waves<TypeParam>(size, 0.3);
    double expected = 0.0;
    for (const auto value : x) expected += static_cast<double>(value) * static_cast<double>(value);
    EXPECT_NEAR(sum_of_squares(x.data(), static_cast<std::int64_t>(size)), expected,
                1e-14 * expected);
  });
}

TYPED_TEST(AdamWOf, SquaresMayExceedTheRangeOfFloat) {
  const std::vector<TypeParam> x(20, static_cast<TypeParam>(1e30));
  EXPECT_NEAR(sum_of_squares(x.data(), 20) / 2e61, 1.0, 1e-6);
}

TYPED_TEST(AdamWOf, StepsByTheFormulaAndTouchesNoMore) {
  for_every_set_and_size([](std::size_t size) {
    const AdamWStep step{0.01, 0.1, 0.5, 1.0 - 0.9 * 0.9, 1.0 - 0.999 * 0.999};
    auto parameter = waves<TypeParam>(size + 1, 0.1);
    const auto gradient = waves<TypeParam>(size + 1, 0.2);
    auto first = waves<TypeParam>(size + 1, 0.4);
    auto second = waves<TypeParam>(size + 1, 0.5);
    for (auto& value : second) value = std::abs(value);
    const auto before = std::vector{parameter, first, second};
    adamw(parameter.data(), gradient.data(), first.data(), second.data(),
          static_cast<std::int64_t>(size), step);
    const double tolerance = sizeof(TypeParam) == sizeof(float) ? 3e-7 : 1e-15;
    for (std::size_t i = 0; i < size; ++i) {
      const double g = 0.5 * static_cast<double>(gradient[i]);
      const double m = 0.9 * static_cast<double>(before[1][i]) + (1.0 - 0.9) * g;
      const double v = 0.999 * static_cast<double>(before[2][i]) + (1.0 - 0.999) * g * g;
      const double p =
          static_cast<double>(before[0][i]) * (1.0 - 0.01 * 0.1) -
          0.01 * (m / step.first_correction) / (std::sqrt(v / step.second_correction) + 1e-8);
      EXPECT_NEAR(static_cast<double>(first[i]), m, tolerance);
      EXPECT_NEAR(static_cast<double>(second[i]), v, tolerance);
      EXPECT_NEAR(static_cast<double>(parameter[i]), p, tolerance);
    }
    EXPECT_EQ(parameter[size], before[0][size]);
    EXPECT_EQ(first[size], before[1][size]);
    EXPECT_EQ(second[size], before[2][size]);
  });
}

}  // namespace
}  // namespace nas::kernels
