// Products of bfloat16 numbers, and which of them a process takes.

#include "kernels/pairs.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "core/error.hpp"
#include "emulated_tiles.hpp"
#include "instruments/environment.hpp"
#include "kernels/instruction_set.hpp"
#include "nn/transformer.hpp"
#include "ops/cpu_products.hpp"
#include "ops/loss.hpp"
#include "ops/product.hpp"
#include "prelude.hpp"

namespace nas::nn {
namespace {

using By = CpuProducts::By;

/// Takes given products in a mode until its end.
class Taken {
 public:
  explicit Taken(CpuProducts products, NumericalMode mode = NumericalMode::fast)
      : mode_(mode), before_(use_cpu_products(mode, products)) {}
  ~Taken() { use_cpu_products(mode_, before_); }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

 private:
  NumericalMode mode_;
  CpuProducts before_;
};

float rounded_to_bfloat16(float x) { return static_cast<float>(at::BFloat16(x)); }

/// Numbers of many sizes, some of which, or their products, are below 2^-126.
torch::Tensor numbers(std::int64_t rows, std::int64_t columns, double least) {
  return at::randn({rows, columns}) * at::exp2(at::rand({rows, columns}) * least);
}

/// Initial + A B in pairs, both of a as it is and of a packed transposed one; of one part a is rounded in its own memory.
torch::Tensor multiplied(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& from,
                         bool packed_left, kernels::PairForm form) {
  const auto m = a.size(0), k = a.size(1), n = b.size(1), pairs = (k + 1) / 2;
  const auto left = at::full(
      {form.parts * (packed_left ? kernels::packed_size(pairs, m) : m * pairs)}, std::nan(""));
  const auto right = at::full({form.parts * kernels::packed_size(pairs, n)}, std::nan(""));
  const auto lines = (packed_left ? a.t() : a).clone(at::MemoryFormat::Contiguous);
  float* const own = lines.data_ptr<float>();
  const auto width = lines.size(1);
  const bool in_place = form.parts == 1 && width > 1;
  for (std::int64_t i = 0; in_place && i < lines.size(0); ++i) {
    kernels::round_pairs(1, width, own + i * width, width, own + i * width, form);
  }
  if (packed_left) {
    if (in_place) {
      kernels::pack_rounded(k, m, own, m, 0, k, left.data_ptr<float>());
    } else {
      kernels::pack_pairs({own, m, 1}, k, m, 0, k, left.data_ptr<float>(), form);
    }
    const auto columns = b.t().contiguous();
    kernels::pack_pairs({columns.data_ptr<float>(), 1, k}, k, n, 0, k, right.data_ptr<float>(),
                        form);
  } else {
    if (!in_place) kernels::round_pairs(m, k, own, k, left.data_ptr<float>(), form);
    const auto rows = b.contiguous();
    for (std::int64_t first = 0; first < k; first += 6) {  // a few at a time
      kernels::pack_pairs({rows.data_ptr<float>(), n, 1}, k, n, first, std::min(k, first + 6),
                          right.data_ptr<float>(), form);
    }
  }
  auto y = at::empty({m, n});
  for (std::int64_t first = 0; first < m; first += 2 * kernels::kPanelRows) {
    auto all = packed_left ? kernels::LeftPairs{left.data_ptr<float>(), m}
                           : kernels::LeftPairs{left.data_ptr<float>()};
    if (in_place && !packed_left) all = {own, 0, 0, k};
    kernels::multiply_pairs(std::min(m - first, 2 * kernels::kPanelRows), n, pairs,
                            all.at(first, form.parts * pairs), right.data_ptr<float>(),
                            {from.data_ptr<float>(), 0}, y.data_ptr<float>() + first * n, n, form);
  }
  return y;
}

/// Of each instruction set, with and without instructions for it, which for tiles may be emulated.
template <class Check>
void with_each_form(const Check& check, bool tiles = false, int parts = 1) {
  const auto all = kernels::instruction_sets();
  for (const auto& name : all) {
    kernels::use_instruction_set(name);
    const bool emulated = tiles && name.starts_with("AVX3");
    for (const bool at_once : {false, emulated || kernels::has_pair_products(tiles)}) {
      for (const bool packed_left : {false, true}) {
        SCOPED_TRACE(name + (at_once ? " at once" : "") + (packed_left ? ", packed" : ""));
        check(packed_left, kernels::PairForm{tiles, parts, at_once});
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
    with_each_form([&](bool packed_left, kernels::PairForm form) {
      EXPECT_TRUE(at::equal(multiplied(a, b, from, packed_left, form), expected))
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
    const auto expected = multiplied(a, b, from, false, kernels::pair_form());
    EXPECT_EQ(tiny(expected), 0) << least;
    with_each_form([&](bool packed_left, kernels::PairForm form) {
      EXPECT_TRUE(at::equal(multiplied(a, b, from, packed_left, form), expected)) << least;
    });
  }
  auto a = at::randn({8, 40}), b = at::randn({40, 40});
  const auto from = at::zeros({40});
  a[1][3] = INFINITY;
  a[2][5] = std::nan("");
  a[3][7] = 3e38F;
  b[7].fill_(3e38F);
  a[4][2] = std::nanf("1");
  const auto expected = multiplied(a, b, from, false, kernels::pair_form());
  EXPECT_TRUE(expected[2].isnan().all().item<bool>());
  EXPECT_TRUE(expected[3].isinf().all().item<bool>());
  with_each_form([&](bool packed_left, kernels::PairForm form) {
    EXPECT_TRUE(multiplied(a, b, from, packed_left, form).allclose(expected, 0, 0, true));
  });
}

/// x in bfloat16 parts, each nearest to what is left, ties of all but the last away from 0.
std::vector<torch::Tensor> parts_of(const torch::Tensor& x, int parts) {
  std::vector<torch::Tensor> found;
  auto rest = x.clone();
  for (int q = 1; q < parts; ++q) {
    found.push_back(
        (rest.view(at::kInt) + 0x8000).bitwise_and(static_cast<int>(0xffff0000U)).view(at::kFloat));
    rest = rest - found.back();
  }
  found.push_back(rest.to(at::kBFloat16).to(at::kFloat));
  return found;
}

/// from + A B as tiles add: of each 32 elements of a row the even ones, the odd ones, both, and then that to the sum.
torch::Tensor added_by_tiles(const torch::Tensor& a, const torch::Tensor& b,
                             const torch::Tensor& from, int parts) {
  const auto x = parts_of(a, parts), y = parts_of(b, parts);
  const auto m = a.size(0), n = b.size(1), k = a.size(1);
  auto sums = from.expand({m, n}).clone(at::MemoryFormat::Contiguous);
  for (std::int64_t i = 0; i < m * n; ++i) {
    for (std::int64_t first = 0; first < k; first += 32) {
      for (auto j = parts - 1; j >= 0; --j) {
        for (auto h = parts - 1 - j; h >= 0; --h) {
          std::array<float, 2> both{};
          for (auto p = first; p < std::min(k, first + 32); ++p) {
            auto& sum = both.at(static_cast<std::size_t>(p % 2));
            sum = std::fma(x.at(static_cast<std::size_t>(h)).data_ptr<float>()[i / n * k + p],
                           y.at(static_cast<std::size_t>(j)).data_ptr<float>()[p * n + i % n], sum);
          }
          sums.data_ptr<float>()[i] += both[0] + both[1];
        }
      }
    }
  }
  return sums;
}

TEST(Tiles, HaveTheSameBitsWithEachInstructionSet) {
  int emulated = 0;
  for (const auto [m, n, k] :
       {std::array<std::int64_t, 3>{1, 5, 3}, {40, 33, 31}, {130, 70, 289}, {64, 290, 64}}) {
    const auto a = at::randn({m, k}), b = at::randn({k, n}), from = at::randn({n});
    for (const int parts : {1, 2, 3}) {
      const auto expected = added_by_tiles(a, b, from, parts);
      with_each_form(
          [&](bool packed_left, kernels::PairForm form) {
            const EmulatedTiles tiles;
            const auto found = multiplied(a, b, from, packed_left, form);
            emulated += EmulatedTiles::products();
            EXPECT_TRUE(at::equal(found, expected))
                << m << " x " << n << " x " << k << ", " << parts << " parts";
          },
          /*tiles=*/true, parts);
    }
  }
  const bool has_vectors = kernels::instruction_sets().front().starts_with("AVX3");
  EXPECT_EQ(emulated > 0, has_vectors && !kernels::has_pair_products(/*tiles=*/true));
}

/// Three parts are nearer to the products of doubles than float32 is, two than TensorFloat-32.
TEST(Tiles, OfPartsAreAccurate) {
  for (const auto [m, n, k] : {std::array<std::int64_t, 3>{64, 96, 128}, {48, 64, 2048}}) {
    const auto a = at::randn({m, k}), b = at::randn({k, n});
    const auto exact = a.to(at::kDouble).matmul(b.to(at::kDouble));
    const auto error = [&](const torch::Tensor& x) {
      return ((x - exact).norm() / exact.norm()).item<double>();
    };
    const auto of_parts = [&](int parts) {
      return error(multiplied(a, b, at::zeros({n}), false, kernels::pair_form(true, parts)));
    };
    const auto of_float = error(multiply_rounded(a, b));
    EXPECT_LE(of_parts(3), of_float) << k;
    EXPECT_LT(of_parts(2), 1e-5) << k;
    EXPECT_GT(of_parts(2), of_float) << k;
  }
}

/// Numbers that bfloat16 has not: near the largest, infinite, none, and too small.
TEST(Tiles, OfThreePartsKeepEveryKindOfNumber) {
  auto a = at::zeros({6, 4});
  const auto b = at::eye(4).slice(0, 0, 4).contiguous();
  const auto largest = std::numeric_limits<float>::max();
  a[0].copy_(torch::tensor({largest, -largest, 1.0F + 0x1p-23F, -0x1.fffffep100F}));
  a[1][2] = INFINITY;
  a[2][1] = std::bit_cast<float>(0x7f800001U);  // NaN whose upper half is infinity
  a[3].copy_(torch::tensor({0x1p-126F, 0x1.8p-127F, 0x1.000002p-100F, 0.0F}));
  with_each_form(
      [&](bool packed_left, kernels::PairForm form) {
        const EmulatedTiles tiles;
        const auto found = multiplied(a, b, at::zeros({4}), packed_left, form);
        EXPECT_TRUE(at::equal(found[0], a[0])) << found[0];
        EXPECT_TRUE(found.slice(0, 1, 3).isnan().all().item<bool>());
        EXPECT_EQ(found[3][0].item<float>(), 0x1p-126F);
        EXPECT_EQ(found[3][1].item<float>(), 0.0F);
      },
      /*tiles=*/true, /*parts=*/3);
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

TEST(Pairs, MapOneInputSeveralTimesAsEachMapAlone) {
  const auto x = at::randn({2, 45, 40});
  const std::vector weights{at::randn({2, 64, 40}), at::randn({2, 24, 40})};
  const Biases bias{at::randn({1, 24}), {-1, 0}};
  for (const auto by : {By::pairs, By::tiles}) {
    const Taken taken({by, 0});
    const auto step = [&](bool at_once) {
      const std::vector leaves{x.detach().requires_grad_(), weights[0].detach().requires_grad_(),
                               weights[1].detach().requires_grad_(),
                               bias.values.detach().requires_grad_()};
      const Biases own{leaves[3], bias.rows};
      const auto y = at_once
                         ? linears_of(leaves[0], {{leaves[1], {{}, {}}}, {leaves[2], own}},
                                      NumericalMode::fast)
                         : std::vector{linear(leaves[0], leaves[1], {{}, {}}, NumericalMode::fast),
                                       linear(leaves[0], leaves[2], own, NumericalMode::fast)};
      (y[0].square().sum() + y[1].sum()).backward();
      std::vector<torch::Tensor> found{y[0].detach(), y[1].detach()};
      for (const auto& leaf : leaves) found.push_back(leaf.grad());
      return found;
    };
    const auto together = step(true), alone = step(false);
    for (std::size_t i = 0; i < together.size(); ++i) {
      EXPECT_TRUE(i == 2 ? together[i].allclose(alone[i], 1e-4, 1e-3)  // in another order
                         : together[i].equal(alone[i]))
          << i;
    }
  }
}

/// A step of a model by what a process may take.
TEST(CpuProducts, AreTakenByAWholeModel) {
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
  const Taken float32({}, NumericalMode::exact);
  const auto exact = step(NumericalMode::exact);
  const auto largest_difference = [&](CpuProducts products) {
    const Taken taken(products);
    const auto found = step(NumericalMode::fast);
    double largest = 0.0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      largest = std::max(largest,
                         ((found[i] - exact[i]).norm() / (exact[i].norm() + 1e-5)).item<double>());
    }
    return largest;
  };
  EXPECT_EQ(largest_difference({By::float32, 0}), 0.0);
  EXPECT_EQ(largest_difference({By::pairs, 1 << 20}), 0.0) << "no map has as many weights";
  for (const auto by : {By::pairs, By::tiles, By::library}) {
    const auto all = largest_difference({by, 0});
    EXPECT_GT(all, 1e-4);
    EXPECT_LT(all, 0.1);
    const auto large = largest_difference({by, 32 * 1037});
    EXPECT_GT(large, 1e-4);
    EXPECT_NE(all, large);
  }
}

TEST(CpuProducts, AreSaidAndRead) {
  for (const CpuProducts& products :
       {CpuProducts{}, CpuProducts{By::tiles, 9}, CpuProducts{By::library, 16384}}) {
    EXPECT_EQ(parse_cpu_products(NumericalMode::fast, to_string(products)), products);
    EXPECT_EQ(parse_cpu_products(NumericalMode::exact, to_string(products)).has_value(),
              products.by != By::library);
  }
  EXPECT_EQ(to_string({By::library, 16384}), "LibTorch from 16384 weights");
  for (const auto* text :
       {"", "pair", "float32 from 4 weights", "pairs from", "pairs from 4", "pairs from -1 weights",
        "pairs from 0 weights", "pairs from x weights"}) {
    EXPECT_FALSE(parse_cpu_products(NumericalMode::fast, text)) << text;
  }
}

/// Float32 takes 1 second, tiles what is said, what mode `fast` alone may take less.
TEST(CpuProducts, AreTheFastestThatAModeMayTake) {
  const auto taken = [](NumericalMode mode, double wide, double narrow) {
    return to_string(fastest_products(mode, true, true, [&](By by, bool is_wide) {
      return by == By::float32 ? 1.0 : by != By::tiles ? 0.1 : is_wide ? wide : narrow;
    }));
  };
  for (const auto mode : {NumericalMode::exact, NumericalMode::tf32}) {
    EXPECT_EQ(taken(mode, 0.89, 0.5), "tiles");
    EXPECT_EQ(taken(mode, 0.91, 0.5), "float32");
    EXPECT_EQ(taken(mode, 0.89, 0.91), "tiles from 16384 weights");
  }
  EXPECT_EQ(taken(NumericalMode::fast, 0.11, 0.5), "pairs");
  const auto never = [](By /*by*/, bool /*is_wide*/) -> double { throw std::logic_error("asked"); };
  EXPECT_EQ(fastest_products(NumericalMode::exact, true, /*has_tiles=*/false, never),
            CpuProducts{});
  EXPECT_EQ(pair_form(NumericalMode::exact, By::tiles).parts, 3);
}

/// What is measured is what can be had, and no slower than float32.
TEST(CpuProducts, OfAProcessAreSaidByItsEnvironment) {
  for (const auto* name : {"NAS_EXACT_PRODUCTS", "NAS_TF32_PRODUCTS", "NAS_FAST_PRODUCTS"}) {
    unsetenv(name);
  }
  const auto here = cpu_products(NumericalMode::fast);
  EXPECT_FALSE(to_json(environment(/*products=*/false)).contains("exact_products"));
  EXPECT_EQ(environment().products.at("fast_products"), to_string(here));
  EXPECT_EQ(to_json(environment()).at("fast_products"), to_string(here));
  const Taken own(here), exact(cpu_products(NumericalMode::exact), NumericalMode::exact);
  keep_products({{"exact_products", "tiles"}});
  EXPECT_EQ(environment().products.at("exact_products"), "tiles");
  keep_products({{"exact_products", "pairs"}});
  EXPECT_EQ(environment().products.at("exact_products"), "tiles") << "of mode fast alone";
  keep_products({{"fast_products", "LibTorch from 7 weights"}});
  EXPECT_EQ(environment().products.at("fast_products"), "LibTorch from 7 weights");
  EXPECT_EQ(environment().products.at("exact_products"), "float32")
      << "of a program that had nothing else";
  keep_products({{"bfloat16", "bfloat16 pairs"}});  // an older program
  keep_products({{"fast_products", "of another program"}});
  EXPECT_EQ(environment().products.at("fast_products"), "LibTorch from 7 weights");
  setenv("NAS_FAST_PRODUCTS", "float32", 1);
  keep_products({{"fast_products", "pairs"}});
  unsetenv("NAS_FAST_PRODUCTS");
  EXPECT_EQ(environment().products.at("fast_products"), "LibTorch from 7 weights");
}

}  // namespace
}  // namespace nas::nn
