// Products of factors rounded to bfloat16.

#include <array>
#include <cmath>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "kernels/instruction_set.hpp"
#include "kernels/product.hpp"
#include "ops/product.hpp"

namespace nas::nn {
namespace {

float rounded_to_bfloat16(float x) { return static_cast<float>(at::BFloat16(x)); }

TEST(Pairs, HaveTheSameBitsWithEachInstructionSet) {
  const auto all = kernels::instruction_sets();
  for (const auto [m, n, k] : {std::array<std::int64_t, 3>{1, 5, 3}, {9, 33, 1}, {130, 100, 577}}) {
    const auto x = at::randn({m, k}), w = at::randn({n, k});
    const auto pairs = (k + 1) / 2;
    auto expected = at::zeros({m, n});
    for (std::int64_t i = 0; i < m * n; ++i) {
      auto& sum = expected.data_ptr<float>()[i];
      for (std::int64_t p = 0; p < pairs; ++p) {
        for (auto e : {2 * p + 1, 2 * p}) {
          if (e == k)
            continue;  // volatile: the product is exact, the sum must not keep more digits
          volatile float product = rounded_to_bfloat16(x.data_ptr<float>()[i / n * k + e]) *
                                   rounded_to_bfloat16(w.data_ptr<float>()[i % n * k + e]);
          sum += product;
        }
      }
    }
    for (const auto& name : all) {
      kernels::use_instruction_set(name);
      for (const bool at_once : {false, kernels::has_pair_products()}) {
        const auto left = at::empty({m, pairs});
        const auto right = at::empty({kernels::packed_size(pairs, n)});
        auto y = at::empty({m, n});
        kernels::round_pairs(m, k, x.data_ptr<float>(), left.data_ptr<float>());
        kernels::pack_pairs(w.data_ptr<float>(), k, k, n, right.data_ptr<float>());
        kernels::multiply_pairs(m, n, pairs, left.data_ptr<float>(), right.data_ptr<float>(),
                                y.data_ptr<float>(), n, at_once);
        EXPECT_TRUE(at::equal(y, expected)) << name << " " << m << " x " << n << " x " << k;
      }
    }
  }
  kernels::use_instruction_set(all.front());
}

TEST(Pairs, MultiplyFrozenWeightsRowByRow) {
  const auto x = at::randn({2, 70, 96}), w = at::randn({2, 300, 96});
  const auto y = linear(x, w, {}, NumericalMode::fast);
  const auto exact = at::bmm(x, w.transpose(1, 2));
  EXPECT_LE((y - exact).abs().max().item<float>(), 2e-2F * exact.abs().max().item<float>());
  EXPECT_GT((y - exact).abs().max().item<float>(), 0.0F);
  if (!kernels::has_pair_products()) GTEST_SKIP() << "LibTorch's products promise nothing more";
  const auto row = linear(x.narrow(1, 69, 1), w, {}, NumericalMode::fast);
  EXPECT_LE((row - y.narrow(1, 69, 1)).abs().max().item<float>(), 1e-5F);
  auto spoiled = x.clone();
  spoiled[1][3][95] = std::nan("");
  const auto of_spoiled = linear(spoiled, w, {}, NumericalMode::fast);
  EXPECT_TRUE(of_spoiled[1][3].isnan().all().item<bool>());
}

}  // namespace
}  // namespace nas::nn
