// What a recurrent layer's state can do, by weights that are written down and not trained: parity, counting
// by three, and how many pairs each update holds (docs/explanation/states.md).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "genotype/architecture_name.hpp"
#include "genotype/costs.hpp"
#include "nn/recurrence.hpp"
#include "nn/recurrent_layer.hpp"
#include "ops/torch_compat.hpp"

namespace nas::nn {
namespace {

constexpr std::int64_t kWidth = 24, kHeads = 3;
constexpr double kOpen = 1e4, kLong = 1e8;  // a sigmoid that is 1; SiLU is the identity there

/// A layer in float64, of no weights or of random ones.
struct Lone {
  explicit Lone(const std::string& name)
      : layer({.mechanisms = {model(name).layer(0)}, .shape = attention_shape(model(name))},
              ParameterScope(parameters)) {
    move_to(parameters, at::kCPU, at::kDouble);
    const at::NoGradGuard no_grad;
    for (auto& parameter : parameters) parameter.tensor.zero_();
  }
  static Architecture model(const std::string& name) {
    return canonical(parse_model(
        name, {.layers = 1, .width = kWidth, .heads = kHeads, .context = 64, .vocabulary = 29}));
  }
  void randomise() {
    const at::NoGradGuard no_grad;
    const auto from = make_generator(at::kCPU, 7);
    for (auto& parameter : parameters) parameter.tensor.normal_(0.0, 0.5, from);
  }
  /// What an input's entry `kind` adds to a row of every head's part of a matrix.
  void set(const std::string& name, std::int64_t row, std::int64_t kind, double value) {
    const at::NoGradGuard no_grad;
    for (auto& parameter : parameters) {
      if (parameter.name == name) {
        parameter.tensor.view({kHeads, -1, kWidth}).select(1, row).select(1, kind).fill_(value);
      }
    }
  }
  /// The state of the first head after tokens, of which each has entry `kind` alone, (f, d).
  [[nodiscard]] torch::Tensor after(const torch::Tensor& kinds) {
    const at::NoGradGuard no_grad;
    return layer.state_after(
        at::one_hot(kinds, kWidth).to(at::kDouble).view({1, 1, -1, kWidth}))[0][0][0];
  }

  std::vector<Parameter> parameters;
  RecurrentLayer layer;
};

torch::Tensor bits(std::int64_t length) {
  return at::randint(2, {length}, make_generator(at::kCPU, 3), at::TensorOptions(at::kLong));
}

// One reflection a one: s <- -s + 2 v swaps 0 and 2 v, whatever the length.
TEST(StateTasks, ADeltaRuleThatReflectsTellsParityAtAnyLength) {
  Lone layer("recurrent{update=delta,neg_eigen=1,bias=none}");
  for (const std::int64_t bit : {0, 1}) {
    layer.set("k_proj.weight", 0, bit, kLong);
    layer.set("v_proj.weight", 0, bit, 50.0);
    layer.set("beta.weight", 0, bit, bit == 1 ? kOpen : -kOpen);
  }
  for (const std::int64_t length : {1, 2, 3, 5, 16, 17, 31, 64, 1000, 10000}) {
    const auto tokens = bits(length);
    const auto odd = tokens.sum().item<std::int64_t>() % 2;
    EXPECT_NEAR(layer.after(tokens)[0][0].item<double>(), odd == 1 ? 100.0 : 0.0, 1e-6) << length;
  }
}

// The same weights where beta ends at 1 forget all before the last one.
TEST(StateTasks, WithoutReflectionTheSameWeightsKeepNoParity) {
  Lone layer("recurrent{update=delta,bias=none}");
  for (const std::int64_t bit : {0, 1}) {
    layer.set("k_proj.weight", 0, bit, kLong);
    layer.set("v_proj.weight", 0, bit, 50.0);
    layer.set("beta.weight", 0, bit, bit == 1 ? kOpen : -kOpen);
  }
  const auto once = layer.after(at::tensor({1}, at::kLong));
  EXPECT_TRUE(layer.after(at::tensor({1, 0, 1}, at::kLong)).allclose(once));
}

// A token that repeats multiplies what it changes by one real number, above 0 without neg_eigen and above -1 with it. Parity
// needs -1; counting by three a cube root of 1 that is not real, so that no weights do it with one token a count.
TEST(StateTasks, ARepeatedTokenMultipliesItsChangesByOneRealNumber) {
  struct Case {
    std::string name;
    double least, most;
    bool reflects;
  };
  for (const auto& [name, least, most, reflects] :
       std::vector<Case>{{"update=add", 1.0, 1.0, false},
                         {"update=add,decay=fixed", 0.0, 1.0, false},
                         {"update=add,decay=scalar", 0.0, 1.0, false},
                         {"update=delta", 0.0, 1.0, false},
                         {"update=delta,decay=scalar", 0.0, 1.0, false},
                         {"update=delta2", 0.0, 1.0, false},
                         {"update=delta,neg_eigen=1", -1.0, 1.0, true},
                         {"update=delta,decay=scalar,neg_eigen=1", -1.0, 1.0, true},
                         {"update=delta2,neg_eigen=1", -1.0, 1.0, true}}) {
    SCOPED_TRACE(name);
    Lone layer("recurrent{" + name + "}");
    layer.randomise();
    bool turned = false;
    for (std::int64_t kind = 0; kind < kWidth; ++kind) {
      const auto state = [&](std::int64_t length) {
        return layer.after(at::full({length}, kind, at::kLong));
      };
      const auto first = state(1);
      const auto second = state(2) - first;
      const auto factor =
          (first * second).sum().item<double>() / first.square().sum().item<double>();
      EXPECT_GE(factor, least - 1e-9);
      EXPECT_LE(factor, most + 1e-9);
      EXPECT_TRUE(second.allclose(factor * first, 1e-9, 1e-12));
      EXPECT_TRUE((state(3) - state(2)).allclose(factor * second, 1e-9, 1e-12));
      turned = turned || factor < 0.0;
    }
    EXPECT_EQ(turned, reflects);
  }
}

// Two reflections, one a token, turn by twice the angle between their keys.
TEST(StateTasks, TwoTokensACountTurnAStateByThirds) {
  constexpr std::int64_t kStart = 0, kFirst = 1, kSecond = 2;
  const auto third = 2.0 * std::numbers::pi / 3.0;
  Lone layer("recurrent{update=delta,neg_eigen=1,bias=none}");
  layer.set("k_proj.weight", 0, kStart, kLong);
  layer.set("v_proj.weight", 0, kStart, 50.0);  // of beta 1, by logit 0: a state begins there
  layer.set("k_proj.weight", 0, kFirst, kLong);
  layer.set("k_proj.weight", 0, kSecond, kLong * std::cos(third / 2.0));
  layer.set("k_proj.weight", 1, kSecond, kLong * std::sin(third / 2.0));
  for (const auto kind : {kFirst, kSecond}) layer.set("beta.weight", 0, kind, kOpen);
  for (const std::int64_t count : {0, 1, 2, 3, 4, 5, 30, 31, 32, 3000, 3001, 3002}) {
    const auto pairs = at::tensor({kFirst, kSecond}, at::kLong).repeat({count});
    const auto state = layer.after(at::cat({at::tensor({kStart}, at::kLong), pairs}));
    const auto angle = third * static_cast<double>(count % 3);
    EXPECT_NEAR(state[0][0].item<double>(), 50.0 * std::cos(angle), 1e-6) << count;
    EXPECT_NEAR(state[1][0].item<double>(), 50.0 * std::sin(angle), 1e-6) << count;
  }
}

/// Pairs of a random key of unit length, (trials, n, 32), and one of 64 values.
struct Pairs {
  explicit Pairs(std::int64_t count)
      : keys(at::empty({200, count, 32}, at::TensorOptions(at::kDouble))
                 .normal_(0.0, 1.0, make_generator(at::kCPU, 1))),
        answers(at::randint(64, {200, count}, make_generator(at::kCPU, 2),
                            at::TensorOptions(at::kLong))),
        values(at::one_hot(answers, 64).to(at::kDouble)) {
    keys = keys / keys.norm(2, {-1}, /*keepdim=*/true);
  }
  /// Whether the largest entry of what a state reads for a key is its value's, (trials, n).
  [[nodiscard]] torch::Tensor recalled(const torch::Tensor& state) const {
    return keys.matmul(state).argmax(-1).eq(answers).to(at::kDouble);
  }
  torch::Tensor keys, answers, values;
};

// What the page says: sums hold more random keys than a delta rule, which erases the oldest; fitting them holds most.
TEST(StateTasks, CapacityIsOfTheUpdate) {
  struct Row {
    std::int64_t pairs;
    double add, delta, fitted;
  };
  for (const auto& row :
       {Row{16, 1.0, 0.99, 1.0}, Row{32, 1.0, 0.89, 1.0}, Row{64, 0.98, 0.57, 1.0}}) {
    const Pairs pairs(row.pairs);
    const Recurrence sums{.queries = pairs.keys, .keys = pairs.keys, .values = pairs.values};
    auto replaced = sums;
    replaced.erased = pairs.keys;
    const auto fitted = at::linalg_pinv(pairs.keys).matmul(pairs.values);
    EXPECT_NEAR(pairs.recalled(by_chunks(sums).state).mean().item<double>(), row.add, 0.01)
        << row.pairs;
    EXPECT_NEAR(pairs.recalled(by_chunks(replaced).state).mean().item<double>(), row.delta, 0.02)
        << row.pairs;
    EXPECT_NEAR(pairs.recalled(fitted).mean().item<double>(), row.fitted, 0.01) << row.pairs;
    const auto by_age = pairs.recalled(by_chunks(replaced).state).mean(0);
    EXPECT_EQ(by_age[row.pairs - 1].item<double>(), 1.0) << "the newest";
    EXPECT_GE(by_age.narrow(0, row.pairs / 2, row.pairs / 2).mean().item<double>(),
              by_age.narrow(0, 0, row.pairs / 2).mean().item<double>());
  }
}

}  // namespace
}  // namespace nas::nn
