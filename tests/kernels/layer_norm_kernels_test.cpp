
#include <gtest/gtest.h>

#include "kernels/cuda/layer_norm.hpp"
#include "kernels/kernel_memory.hpp"

namespace nas::cuda {
namespace {

constexpr double kEpsilon = 1e-5;

template <class Real>
struct Rows {
  std::int64_t models, rows, width;
  Array<Real> x = random_numbers<Real>(models * rows * width, 1, 2.0);
  Array<Real> weight = random_numbers<Real>(models * width, 2);
  Array<Real> bias = random_numbers<Real>(models * width, 3);
  Array<Real> dy = random_numbers<Real>(models * rows * width, 4);
  Array<Real> beside = random_numbers<Real>(models * rows * width, 5);
  Array<Real> y = unwritten<Real>(models * rows * width);
  Array<Real> dx = unwritten<Real>(models * rows * width);
  Array<Real> dweight = unwritten<Real>(models * width);
  Array<Real> dbias = unwritten<Real>(models * width);
};

/// @param beside  whether there is a gradient to be added.
template <class Real>
void run_kernels(Rows<Real>& rows, bool beside = true) {
  auto means = unwritten<Real>(rows.models * rows.rows);
  auto deviations = unwritten<Real>(rows.models * rows.rows);
  const LayerNorm<Real> norm{rows.models,        rows.rows,    rows.width,       rows.x.data(),
                             rows.weight.data(), means.data(), deviations.data()};
  auto scratch = unwritten<Real>(layer_norm_scratch_size(norm));
  layer_norm(norm, rows.bias.data(), kEpsilon, rows.y.data(), AtOnce());
  layer_norm_backward<Real>(norm,
                            {rows.dy.data(), beside ? rows.beside.data() : nullptr, rows.dx.data(),
                             rows.dweight.data(), rows.dbias.data(), scratch.data()},
                            AtOnce());
}

/// The formula, and by x the derivative of its pieces, in double.
template <class Real>
void run_formula(Rows<Real>& rows) {
  const auto width = static_cast<std::size_t>(rows.width);
  const auto count = static_cast<double>(rows.width);
  Array<double> dweight(rows.weight.size());
  Array<double> dbias(rows.weight.size());
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows.models * rows.rows); ++row) {
    const std::size_t model = row / static_cast<std::size_t>(rows.rows);
    const Real* x = rows.x.data() + row * width;
    const Real* dy = rows.dy.data() + row * width;
    const Real* w = rows.weight.data() + model * width;
    double mean = 0;
    for (std::size_t e = 0; e < width; ++e) mean += x[e] / count;
    double variance = 0;
    for (std::size_t e = 0; e < width; ++e) variance += (x[e] - mean) * (x[e] - mean) / count;
    const double deviation = std::sqrt(variance + kEpsilon);
    double dmean = 0;
    double ddeviation = 0;
    for (std::size_t e = 0; e < width; ++e) {
      const double normed = (x[e] - mean) / deviation;
      rows.y[row * width + e] = static_cast<Real>(w[e] * normed + rows.bias[model * width + e]);
      dweight[model * width + e] += dy[e] * normed;
      dbias[model * width + e] += dy[e];
      dmean -= dy[e] * w[e] / deviation;
      ddeviation -= dy[e] * w[e] * normed / deviation;
    }
    for (std::size_t e = 0; e < width; ++e) {
      rows.dx[row * width + e] = static_cast<Real>(
          dy[e] * w[e] / deviation + dmean / count +
          ddeviation * (x[e] - mean) / (deviation * count) + rows.beside[row * width + e]);
    }
  }
  rows.dweight.assign(dweight.begin(), dweight.end());
  rows.dbias.assign(dbias.begin(), dbias.end());
}

template <class Real>
class LayerNormKernels : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(LayerNormKernels, Reals);

TYPED_TEST(LayerNormKernels, FollowTheFormulaForEverySize) {
  // Of packs of one and of four, held by a warp (up to 256 and 1024) or not.
  for (const std::int64_t width : {1, 31, 33, 128, 150, 300, 301, 516, 1028}) {
    for (const std::int64_t count : {1, 65, 130}) {
      Rows<TypeParam> ours{2, count, width};
      Rows<TypeParam> expected{2, count, width};
      run_kernels(ours);
      run_formula(expected);
      const auto what = "D " + std::to_string(width) + ", rows " + std::to_string(count);
      expect_close(ours.y, expected.y, what + " y");
      expect_close(ours.dx, expected.dx, what + " dx");
      expect_close(ours.dweight, expected.dweight, what + " dweight");
      expect_close(ours.dbias, expected.dbias, what + " dbias");
    }
  }
}

TEST(LayerNormGradients, MayHaveNoneBeside) {
  Rows<double> ours{1, 9, 20};
  Rows<double> expected{1, 9, 20};
  expected.beside.assign(expected.beside.size(), 0.0);
  run_kernels(ours, /*beside=*/false);
  run_formula(expected);
  expect_close(ours.dx, expected.dx, "dx");
}

TEST(LayerNormArray, AModelIsBitEqualAloneAndBesideANaN) {
  Rows<float> array{3, 70, 40};
  array.x[5] = std::numeric_limits<float>::quiet_NaN();
  run_kernels(array);
  const auto last = [](const Array<float>& numbers) {
    return Array<float>(numbers.end() - static_cast<std::ptrdiff_t>(numbers.size() / 3),
                        numbers.end());
  };
  in_both_orders([&] {
    Rows<float> lone{1, 70, 40};
    lone.x = last(array.x);
    lone.weight = last(array.weight);
    lone.bias = last(array.bias);
    lone.dy = last(array.dy);
    lone.beside = last(array.beside);
    run_kernels(lone);
    EXPECT_EQ(lone.y, last(array.y));
    EXPECT_EQ(lone.dx, last(array.dx));
    EXPECT_EQ(lone.dweight, last(array.dweight));
    EXPECT_EQ(lone.dbias, last(array.dbias));
  });
}

}  // namespace
}  // namespace nas::cuda
