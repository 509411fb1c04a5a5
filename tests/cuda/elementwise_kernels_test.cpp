#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "cuda/elementwise.hpp"
#include "cuda/emulated.hpp"
#include "cuda/gates.hpp"
#include "kernels/elementwise.hpp"

namespace nas::cuda {
namespace {

template <class Real>
class ElementwiseKernels : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(ElementwiseKernels, Reals);

constexpr std::int64_t kModels = 3;
constexpr std::int64_t kSize = 70001;  // more than a block of the mask, and no multiple of anything
constexpr std::uint64_t kSite = 5;

/// What a map of ours and the CPU's give, the CPU's model by model.
template <class Real>
struct Both {
  std::vector<Real> ours = unwritten<Real>(kModels * kSize);
  std::vector<Real> expected = unwritten<Real>(kModels * kSize);
  std::vector<std::uint64_t> seeds{11, 12, 13};
  Dropout dropout;

  explicit Both(double share) : dropout(Dropout::of(seeds.data(), kSite, share)) {}

  void on_cpu(const std::function<void(std::int64_t, const kernels::Dropout&)>& run) const {
    for (std::int64_t r = 0; r < kModels; ++r) {
      run(r * kSize, {mix64(mix64(seeds[static_cast<std::size_t>(r)]) ^ kSite), dropout.threshold,
                      dropout.scale});
    }
  }
};

TYPED_TEST(ElementwiseKernels, EqualTheCpusWithAndWithoutDropout) {
  const auto x = random_numbers<TypeParam>(kModels * kSize, 1, 4.0);
  const auto y = random_numbers<TypeParam>(kModels * kSize, 2, 4.0);
  for (const double share : {0.0, 0.3}) {
    Both<TypeParam> both(share);
    const auto compare = [&](const char* what) {
      expect_close(both.ours, both.expected, what);
      for (std::size_t i = 0; i < both.ours.size(); ++i) {
        ASSERT_EQ(both.ours[i] == 0, both.expected[i] == 0) << what << ", mask of element " << i;
      }
    };
    drop(x.data(), both.ours.data(), kModels, kSize, both.dropout, kNoStream);
    both.on_cpu([&](std::int64_t at, const kernels::Dropout& dropout) {
      kernels::drop(x.data() + at, both.expected.data() + at, 0, kSize, dropout);
    });
    compare("drop");
    add_dropped(x.data(), y.data(), both.ours.data(), kModels, kSize, both.dropout, kNoStream);
    both.on_cpu([&](std::int64_t at, const kernels::Dropout& dropout) {
      kernels::add_dropped(x.data() + at, y.data() + at, both.expected.data() + at, 0, kSize,
                           dropout);
    });
    compare("add_dropped");
    gelu(x.data(), both.ours.data(), kModels, kSize, both.dropout, kNoStream);
    both.on_cpu([&](std::int64_t at, const kernels::Dropout& dropout) {
      kernels::gelu(x.data() + at, both.expected.data() + at, 0, kSize, dropout);
    });
    compare("gelu");
    gelu_backward(x.data(), y.data(), both.ours.data(), kModels, kSize, both.dropout, kNoStream);
    both.on_cpu([&](std::int64_t at, const kernels::Dropout& dropout) {
      kernels::gelu_backward(x.data() + at, y.data() + at, both.expected.data() + at, 0, kSize,
                             dropout);
    });
    compare("gelu_backward");
  }
}

TEST(Dropout, ReadsTheSeedsWhenTheKernelRuns) {
  Both<float> both(0.5);
  const std::vector<float> ones(static_cast<std::size_t>(kModels * kSize), 1.0F);
  drop(ones.data(), both.ours.data(), kModels, kSize, both.dropout, kNoStream);
  const auto first = both.ours;
  both.seeds[1] = 99;
  drop(ones.data(), both.ours.data(), kModels, kSize, both.dropout, kNoStream);
  const auto differs = [&](std::int64_t model) {
    return !std::equal(first.begin() + model * kSize, first.begin() + (model + 1) * kSize,
                       both.ours.begin() + model * kSize);
  };
  EXPECT_FALSE(differs(0));
  EXPECT_TRUE(differs(1));
  EXPECT_FALSE(differs(2));
}

// Gates.

constexpr std::int64_t kGated = 2500;

/// A model of every kind; those with gates have the rows of logits in another order.
struct Kinds {
  std::vector<Gate> gates{{GateKind::none, -1},
                          {GateKind::input, 3},
                          {GateKind::output, 2},
                          {GateKind::highway, 1},
                          {GateKind::normed, 0}};
  Gates all{gates.data(), 5, kGated};
};

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double increment(GateKind kind, double s, double o, double x, double h) {
  switch (kind) {
    case GateKind::output:
      return s * o;
    case GateKind::highway:
      return s * (o - h);
    case GateKind::normed:
      return s * o + (1 - s) * x;
    default:
      return o;
  }
}

/// The derivative of a smooth function.
double derivative(const std::function<double(double)>& f, double x) {
  constexpr double kStep = 1e-4;
  return (8 * (f(x + kStep) - f(x - kStep)) - (f(x + 2 * kStep) - f(x - 2 * kStep))) / (12 * kStep);
}

template <class Real>
class GateKernels : public testing::Test {};
TYPED_TEST_SUITE(GateKernels, Reals);

TYPED_TEST(GateKernels, CombineAsEachKindSays) {
  using Real = TypeParam;
  constexpr double kAllowed = sizeof(Real) == sizeof(float) ? 2e-6 : 1e-10;
  const Kinds kinds;
  const auto logits = random_numbers<Real>(4 * kGated, 1, 3.0);
  const auto o = random_numbers<Real>(5 * kGated, 2);
  const auto x = random_numbers<Real>(5 * kGated, 3);
  const auto h = random_numbers<Real>(5 * kGated, 4);
  const auto g = random_numbers<Real>(5 * kGated, 5);
  auto input = unwritten<Real>(5 * kGated);
  auto out = unwritten<Real>(5 * kGated);
  auto input_dx = unwritten<Real>(5 * kGated);
  auto dlogits = unwritten<Real>(4 * kGated);  // each row is written by one of the two
  auto d_o = unwritten<Real>(5 * kGated);
  auto dx = unwritten<Real>(5 * kGated);
  auto dh = unwritten<Real>(5 * kGated);
  const GateInputs<const Real> inputs{logits.data(), o.data(), x.data(), h.data()};
  gate_input(kinds.all, logits.data(), x.data(), input.data(), kNoStream);
  gate_input_backward(kinds.all, logits.data(), x.data(), g.data(), dlogits.data(), input_dx.data(),
                      kNoStream);
  gate_increment(kinds.all, inputs, out.data(), kNoStream);
  gate_increment_backward(kinds.all, inputs, g.data(),
                          {dlogits.data(), d_o.data(), dx.data(), dh.data()}, kNoStream);
  for (std::int64_t r = 0; r < 5; ++r) {
    const auto [kind, row] = kinds.gates[static_cast<std::size_t>(r)];
    for (std::int64_t i = 0; i < kGated; ++i) {
      const auto at = static_cast<std::size_t>(r * kGated + i);
      const auto logit_at = static_cast<std::size_t>(row * kGated + i);
      const double logit = row < 0 ? 0.0 : logits[logit_at];
      const double s = sigmoid(logit);
      const auto what = ::testing::Message() << "kind " << r << ", element " << i;
      const double opened = kind == GateKind::input ? s : 1.0;
      ASSERT_NEAR(input[at], opened * x[at], kAllowed) << what;
      ASSERT_NEAR(input_dx[at], opened * g[at], kAllowed) << what;
      ASSERT_NEAR(out[at], increment(kind, s, o[at], x[at], h[at]), kAllowed) << what;
      const auto gradient = [&](const std::function<double(double)>& f, double point) {
        return g[at] * derivative(f, point);
      };
      ASSERT_NEAR(d_o[at],
                  gradient([&](double v) { return increment(kind, s, v, x[at], h[at]); }, o[at]),
                  kAllowed)
          << what;
      ASSERT_NEAR(dx[at],
                  gradient([&](double v) { return increment(kind, s, o[at], v, h[at]); }, x[at]),
                  kAllowed)
          << what;
      ASSERT_NEAR(dh[at],
                  gradient([&](double v) { return increment(kind, s, o[at], x[at], v); }, h[at]),
                  kAllowed)
          << what;
      if (row < 0) continue;
      const auto by_logit = [&](double v) {
        return kind == GateKind::input ? sigmoid(v) * x[at]
                                       : increment(kind, sigmoid(v), o[at], x[at], h[at]);
      };
      ASSERT_NEAR(dlogits[logit_at], gradient(by_logit, logit), kAllowed) << what;
    }
  }
}

}  // namespace
}  // namespace nas::cuda
