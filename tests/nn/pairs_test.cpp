// Products of factors rounded to bfloat16, and which of them a process takes.

#include <array>
#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "core/error.hpp"
#include "instruments/environment.hpp"
#include "kernels/instruction_set.hpp"
#include "kernels/product.hpp"
#include "nn/transformer.hpp"
#include "ops/fast_products.hpp"
#include "ops/loss.hpp"
#include "ops/product.hpp"
#include "prelude.hpp"

namespace nas::nn {
namespace {

using By = FastProducts::By;

/// Takes given products until its end.
class Taken {
 public:
  explicit Taken(FastProducts products) { use_fast_products(products); }
  ~Taken() { use_fast_products(before_); }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

 private:
  FastProducts before_ = fast_products();
};

float rounded_to_bfloat16(float x) { return static_cast<float>(at::BFloat16(x)); }

/// Numbers of many sizes, some of which, or their products, are below 2^-126.
torch::Tensor numbers(std::int64_t rows, std::int64_t columns, double least) {
  return at::randn({rows, columns}) * at::exp2(at::rand({rows, columns}) * least);
}

/// Initial + A B in pairs, both of a as it is and of a packed transposed one.
torch::Tensor multiplied(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& from,
                         bool packed_left, bool at_once) {
  const auto m = a.size(0), k = a.size(1), n = b.size(1), pairs = (k + 1) / 2;
  const auto left =
      at::full({packed_left ? kernels::packed_size(pairs, m) : m * pairs}, std::nan(""));
  const auto right = at::full({kernels::packed_size(pairs, n)}, std::nan(""));
  const auto lines = packed_left ? a.t().contiguous() : a.contiguous();
  if (packed_left) {
    kernels::pack_pairs({lines.data_ptr<float>(), m, 1}, k, m, 0, k, left.data_ptr<float>(),
                        at_once);
    const auto columns = b.t().contiguous();
    kernels::pack_pairs({columns.data_ptr<float>(), 1, k}, k, n, 0, k, right.data_ptr<float>(),
                        at_once);
  } else {
    kernels::round_pairs(m, k, lines.data_ptr<float>(), k, left.data_ptr<float>(), at_once);
    const auto rows = b.contiguous();
    for (std::int64_t first = 0; first < k; first += 6) {  // a few at a time
      kernels::pack_pairs({rows.data_ptr<float>(), n, 1}, k, n, first, std::min(k, first + 6),
                          right.data_ptr<float>(), at_once);
    }
  }
  auto y = at::empty({m, n});
  for (std::int64_t first = 0; first < m; first += 2 * kernels::kPanelRows) {
    const kernels::LeftPairs all{left.data_ptr<float>(), packed_left ? m : 0, 0};
    kernels::multiply_pairs(std::min(m - first, 2 * kernels::kPanelRows), n, pairs,
                            all.at(first, pairs), right.data_ptr<float>(),
                            {from.data_ptr<float>(), 0}, y.data_ptr<float>() + first * n, n,
                            at_once);
  }
  return y;
}

/// Of each instruction set, with and without instructions for pairs.
template <class Check>
void with_each_form(const Check& check) {
  const auto all = kernels::instruction_sets();
  for (const auto& name : all) {
    kernels::use_instruction_set(name);
    for (const bool at_once : {false, kernels::has_pair_products()}) {
      for (const bool packed_left : {false, true}) {
        SCOPED_TRACE(name + (at_once ? " at once" : "") + (packed_left ? ", packed" : ""));
        check(packed_left, at_once);
      }
    }
  }
  kernels::use_instruction_set(all.front());
}

TEST(Pairs, HaveTheSameBitsWithEachInstructionSet) {
  for (const auto [m, n, k] : {std::array<std::int64_t, 3>{1, 5, 3}, {9, 33, 1}, {130, 100, 577}}) {
    const auto a = at::randn({m, k}), b = at::randn({k, n}), from = at::randn({n});
    auto expected = from.expand({m, n}).clone(at::MemoryFormat::Contiguous);
    for (std::int64_t i = 0; i < m * n; ++i) {
      auto& sum = expected.data_ptr<float>()[i];
      for (std::int64_t p = 0; p < (k + 1) / 2; ++p) {
        for (auto e : {2 * p + 1, 2 * p}) {
          if (e == k)
            continue;  // volatile: the product is exact, the sum must not keep more digits
          volatile float product = rounded_to_bfloat16(a.data_ptr<float>()[i / n * k + e]) *
                                   rounded_to_bfloat16(b.data_ptr<float>()[e * n + i % n]);
          sum += product;
        }
      }
    }
    with_each_form([&](bool packed_left, bool at_once) {
      EXPECT_TRUE(at::equal(multiplied(a, b, from, packed_left, at_once), expected))
          << m << " x " << n << " x " << k;
    });
  }
}

/// Also of what is too small for float32, too large, or no number.
TEST(Pairs, OfEveryKindOfNumberAreThoseOfTheProcessor) {
  if (!kernels::has_pair_products()) GTEST_SKIP() << "nothing to compare with";
  for (const double least : {-20.0, -63.0, -70.0, -125.0, -145.0}) {
    const auto a = numbers(64, 97, least), b = numbers(97, 40, least), from = numbers(1, 40, -140);
    const auto tiny = [](const torch::Tensor& x) {
      return x.abs().lt(std::ldexp(1.0, -126)).logical_and(x.ne(0)).sum().item<int>();
    };
    const auto expected = multiplied(a, b, from, false, true);
    EXPECT_EQ(tiny(expected), 0) << least;
    with_each_form([&](bool packed_left, bool at_once) {
      EXPECT_TRUE(at::equal(multiplied(a, b, from, packed_left, at_once), expected)) << least;
    });
  }
  auto a = at::randn({8, 40}), b = at::randn({40, 40});
  const auto from = at::zeros({40});
  a[1][3] = INFINITY;
  a[2][5] = std::nan("");
  a[3][7] = 3e38F;
  b[7].fill_(3e38F);
  a[4][2] = std::nanf("1");
  const auto expected = multiplied(a, b, from, false, true);
  EXPECT_TRUE(expected[2].isnan().all().item<bool>());
  EXPECT_TRUE(expected[3].isinf().all().item<bool>());
  with_each_form([&](bool packed_left, bool at_once) {
    EXPECT_TRUE(multiplied(a, b, from, packed_left, at_once).allclose(expected, 0, 0, true));
  });
}

/// y, and the gradients w.r.t. x, weight and bias.
std::vector<torch::Tensor> mapped(const torch::Tensor& x, const torch::Tensor& w,
                                  const torch::Tensor& bias, const torch::Tensor& by_y,
                                  NumericalMode mode) {
  const std::vector leaves{x.detach().requires_grad_(), w.detach().requires_grad_(),
                           bias.detach().requires_grad_()};
  const auto y = linear(leaves[0], leaves[1], {leaves[2], {0, -1}}, mode);
  y.backward(by_y);
  return {y.detach(), leaves[0].grad(), leaves[1].grad(), leaves[2].grad()};
}

TEST(Pairs, MapAsExactOnesButForTheRoundingOfFactors) {
  const auto round = [](const torch::Tensor& x) { return x.to(at::kBFloat16).to(at::kFloat); };
  for (const auto [rows, in, out] :
       {std::array<std::int64_t, 3>{70, 96, 300}, {3, 7, 5}, {301, 48, 48}}) {
    const auto x = at::randn({2, rows, in}), w = at::randn({2, out, in}),
               bias = at::randn({1, out});
    const auto by_y = at::randn({2, rows, out});
    const Taken pairs({By::pairs, 0});
    const auto found = mapped(x, w, bias, by_y, NumericalMode::fast);
    const auto exact = mapped(x, w, bias, by_y, NumericalMode::exact);
    const auto rounded = mapped(round(x), round(w), bias, round(by_y), NumericalMode::exact);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto& expected = i == 3 ? exact[i] : rounded[i];  // sums are of what was given
      const auto scale = expected.abs().max().item<float>();
      EXPECT_LE((found[i] - expected).abs().max().item<float>(), 2e-6F * scale) << i << " " << rows;
      EXPECT_EQ(found[i].equal(exact[i]), i == 3) << i;
    }
    const at::NoGradGuard frozen;
    EXPECT_TRUE(linear(x, w, {bias, {0, -1}}, NumericalMode::fast).equal(found[0]));
    const auto strided = w.transpose(1, 2).contiguous().transpose(1, 2);
    EXPECT_TRUE(linear(x, strided, {bias, {0, -1}}, NumericalMode::fast).equal(found[0]));
    auto spoiled = x.clone();
    spoiled[1][2][in - 1] = std::nan("");
    const auto of_spoiled = linear(spoiled, w, {}, NumericalMode::fast);
    EXPECT_TRUE(of_spoiled[1][2].isnan().all().item<bool>());
    EXPECT_FALSE(of_spoiled[1][1].isnan().any().item<bool>());
  }
}

/// A step of a model by what a process may take.
TEST(FastProducts, AreTakenByAWholeModel) {
  const auto step = [](NumericalMode mode) {
    Architecture architecture{.width = 32, .context = 21, .vocabulary = 1037};
    Transformer model(architecture, mode);
    model.initialise(1, 0);
    const auto tokens = at::arange(5 * 21, at::TensorOptions(at::kLong)).view({5, 21});
    const auto loss = model.loss(tokens, tokens.roll(1, 1), Pass{true, {1}});
    loss.backward();
    std::vector<torch::Tensor> found{loss.detach().reshape({1})};
    for (const auto& [name, tensor] : model.parameters()) found.push_back(tensor.grad());
    return found;
  };
  const auto exact = step(NumericalMode::exact);
  const auto largest_difference = [&](FastProducts products) {
    const Taken taken(products);
    const auto found = step(NumericalMode::fast);
    double largest = 0.0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      largest = std::max(largest,
                         ((found[i] - exact[i]).norm() / (exact[i].norm() + 1e-6)).item<double>());
    }
    return largest;
  };
  EXPECT_EQ(largest_difference({By::float32, 0}), 0.0);
  EXPECT_EQ(largest_difference({By::pairs, 1 << 20}), 0.0) << "no map has as many weights";
  for (const auto by : {By::pairs, By::library}) {
    const auto all = largest_difference({by, 0});
    EXPECT_GT(all, 1e-4);
    EXPECT_LT(all, 0.1);
    const auto large = largest_difference({by, 32 * 1037});
    EXPECT_GT(large, 1e-4);
    EXPECT_NE(all, large);
  }
}

TEST(FastProducts, AreSaidAndRead) {
  for (const FastProducts& products :
       {FastProducts{}, FastProducts{By::pairs, 0}, FastProducts{By::library, 16384}}) {
    EXPECT_EQ(parse_fast_products(to_string(products)), products);
  }
  EXPECT_EQ(to_string({By::library, 16384}), "LibTorch from 16384 weights");
  for (const auto* text :
       {"", "pair", "float32 from 4 weights", "pairs from", "pairs from 4", "pairs from -1 weights",
        "pairs from 0 weights", "pairs from x weights"}) {
    EXPECT_FALSE(parse_fast_products(text)) << text;
  }
}

/// What is measured is what can be had, and no slower than float32.
TEST(FastProducts, OfAProcessAreSaidByItsEnvironment) {
  const auto here = fast_products();
  EXPECT_TRUE(here.by != By::pairs || kernels::has_pair_products());
  EXPECT_EQ(environment().fast_products, to_string(here));
  EXPECT_EQ(to_json(environment()).at("fast_products"), to_string(here));
  const Taken own(here);
  keep_products({{"fast_products", "LibTorch from 7 weights"}});
  EXPECT_EQ(environment().fast_products, "LibTorch from 7 weights");
  keep_products({{"bfloat16", "bfloat16 pairs"}});  // an older program
  keep_products({{"fast_products", "of another program"}});
  EXPECT_EQ(environment().fast_products, "LibTorch from 7 weights");
  setenv("NAS_FAST_PRODUCTS", "float32", 1);
  keep_products({{"fast_products", "pairs"}});
  unsetenv("NAS_FAST_PRODUCTS");
  EXPECT_EQ(environment().fast_products, "LibTorch from 7 weights");
}

}  // namespace
}  // namespace nas::nn
