// The operations by CUDA kernels, emulated on CPU tensors, against those of the CPU.

#include "ops/device_operations.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "array_step.hpp"
#include "emulated_device.hpp"
#include "gradients.hpp"
#include "nn/attention.hpp"
#include "ops/cpu_products.hpp"
#include "ops/cuda_operations.hpp"
#include "ops/embedding.hpp"
#include "ops/gate.hpp"
#include "ops/memory.hpp"
#include "ops/norm.hpp"
#include "ops/product.hpp"
#include "ops/recurrence.hpp"
#include "ops/torch_compat.hpp"
#include "training/optimizer.hpp"

namespace nas::nn {

namespace {

using test::Emulation;
using test::From;
using test::step_of;
using test::various_models;

double tolerance(torch::ScalarType type) { return type == at::kDouble ? 1e-10 : 1e-5; }

/// Up to rounding, relative to the largest number or to 1.
void expect_close(const torch::Tensor& ours, const torch::Tensor& expected, const std::string& what,
                  double allowed = 0.0) {
  ASSERT_EQ(ours.sizes(), expected.sizes()) << what;
  if (ours.numel() == 0) return;
  const double largest = std::max(expected.abs().max().item<double>(), 1.0);
  EXPECT_LE((ours - expected).abs().max().item<double>(),
            std::max(allowed, tolerance(expected.scalar_type())) * largest)
      << what;
}

/// What a function of tensors gives, and its gradients for an outer gradient that is drawn.
template <class Function>
std::vector<torch::Tensor> with_gradients(const Function& function,
                                          const std::vector<torch::Tensor>& arguments) {
  std::vector<torch::Tensor> inputs;
  for (const auto& argument : arguments) {
    inputs.push_back(argument.detach().clone().requires_grad_(true));
  }
  const auto result = function(inputs);
  const auto outer = at::empty_like(result, at::MemoryFormat::Contiguous)
                         .normal_(0, 1, make_generator(at::kCPU, 8));
  (result * outer).sum().backward();
  std::vector<torch::Tensor> all{result.detach()};
  for (const auto& input : inputs) all.push_back(input.grad());
  return all;
}

/// Both ways to compute it agree.
template <class Function>
void expect_same(const Function& function, const std::vector<torch::Tensor>& arguments,
                 const std::string& what, double allowed = 0.0) {
  const auto expected = with_gradients(function, arguments);
  std::vector<torch::Tensor> ours;
  {
    const Emulation emulation;
    ours = with_gradients(function, arguments);
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expect_close(ours[i], expected[i], what + ", " + std::to_string(i), allowed);
  }
}

torch::Tensor random(const std::vector<std::int64_t>& sizes, torch::ScalarType type,
                     std::uint64_t seed) {
  return at::randn(sizes, make_generator(at::kCPU, seed), at::TensorOptions(type));
}

/// A pass whose seeds are where both ways look for them.
Pass pass_of(std::int64_t models) {
  const Emulation emulation;
  Pass pass{.training = true, .seeds = {}};
  for (std::int64_t r = 0; r < models; ++r) {
    pass.seeds.push_back(~std::uint64_t{0} - static_cast<std::uint64_t>(r));
  }
  return pass.on(at::kCPU);
}

class DeviceOperationsOf : public ::testing::TestWithParam<torch::ScalarType> {};

TEST_P(DeviceOperationsOf, DropoutAndActivations) {
  const auto x = random({3, 5, 17}, GetParam(), 1);
  const auto residual = random({3, 17, 5}, GetParam(), 2).transpose(1, 2);
  const auto masks = dropout_masks({0.2, 0.5, 0.0}, pass_of(3), 7);
  const auto none = dropout_masks(0.0, Pass{}, 7, 3);
  expect_same([&](const auto& in) { return dropout(in[0], masks); }, {x}, "dropout");
  expect_same([&](const auto& in) { return dropped_gelu(in[0], masks); }, {x}, "dropped_gelu");
  expect_same([&](const auto& in) { return dropped_gelu(in[0], none); }, {x}, "gelu");
  expect_same([&](const auto& in) { return add_dropped(in[0], in[1], masks); }, {residual, x},
              "add_dropped");
}

/// Of x and its bias, against the same of their sum.
TEST_P(DeviceOperationsOf, MapsOfBiasedTensors) {
  const std::vector given{random({3, 5, 70, 12}, GetParam(), 1), random({3, 12}, GetParam(), 2),
                          random({3, 5, 70, 12}, GetParam(), 3)};
  for (const auto& masks :
       {dropout_masks({0.2, 0.5, 0.0}, pass_of(3), 7), dropout_masks(0.0, Pass{}, 7, 3)}) {
    const auto biased = [](const auto& in) {
      return device_operations(at::kCPU) != nullptr ? Biased{in[0], in[1]}
                                                    : Biased{with_bias({in[0], in[1]})};
    };
    expect_same([&](const auto& in) { return dropped_gelu(biased(in), masks) + in[2]; }, given,
                "dropped_gelu");
    expect_same([&](const auto& in) { return add_dropped(in[2], biased(in), masks); }, given,
                "add_dropped");
  }
}

/// In every mode and with biases of all models, of some and of none.
TEST_P(DeviceOperationsOf, LinearMapsOfOneInput) {
  const std::vector given{random({3, 2, 40, 6}, GetParam(), 1), random({3, 5, 6}, GetParam(), 2),
                          random({3, 5}, GetParam(), 3),        random({3, 8, 6}, GetParam(), 4),
                          random({2, 8}, GetParam(), 5),        random({3, 4, 6}, GetParam(), 6)};
  const auto own = use_cpu_products(NumericalMode::fast,
                                    {CpuProducts::By::library});  // rounds results, as devices do
  for (const auto mode : {NumericalMode::exact, NumericalMode::fast}) {
    const auto all = [mode](const auto& in) {
      const auto y = linears_of(
          in[0], {{in[1], Biases::of_all(in[2])}, {in[3], {in[4], {0, -1, 1}}}, {in[5], {}}}, mode);
      return at::cat(y, -1);
    };
    // In mode fast gradients w.r.t. the input are added in bfloat16.
    expect_same(all, given, "linears_of", mode == NumericalMode::fast ? 0x1.0p-7 : 0.0);
    const auto before_bias = [mode](const auto& in) {
      const auto y = linear_before_bias(in[0], in[3], {in[4], {0, -1, 1}}, mode);
      return with_bias(y) + 0 * (in[1].sum() + in[2].sum() + in[5].sum());
    };
    expect_same(before_bias, given, "linear_before_bias");
  }
  use_cpu_products(NumericalMode::fast, own);
}

/// A copy, one gated term, two, three, and a copy with logits that it does not read.
TEST_P(DeviceOperationsOf, GatedSums) {
  GatedSums sums{{{{{{1.0F, 0.0F}}}, -1},
                  {{{{0.0F, 1.0F}}}, 3},
                  {{{{0.0F, 1.0F}, {}, {0.0F, -1.0F}}}, 2},
                  {{{{0.0F, 1.0F}, {1.0F, -1.0F}, {0.5F, 0.25F}}}, 0},
                  {{{{1.0F, 0.0F}}}, 1}}};
  sums.on_device =
      at::from_blob(sums.of_models.data(),
                    {static_cast<std::int64_t>(sums.of_models.size() * sizeof(kernels::GatedSum))},
                    at::TensorOptions(at::kByte));
  const std::vector<std::int64_t> sizes{5, 1, 1, 2503};  // more than a block, and no multiple
  expect_same(
      [&](const auto& in) {
        return gated_sum(sums, {in[0], in[1], in[2]}, in[3]);
      },
      {random(sizes, GetParam(), 1), random(sizes, GetParam(), 2), random(sizes, GetParam(), 3),
       random({4, 1, 1, 2503}, GetParam(), 4)},
      "gated_sum");
}

TEST_P(DeviceOperationsOf, LayerNormBesideItsInput) {
  for (const bool uses_input : {true, false}) {
    expect_same(
        [&](const auto& in) {
          const auto [y, x] = layer_norm_branch(in[0], in[1], in[2], 1e-5, NumericalMode::exact);
          return uses_input ? y + 2 * x : y;
        },
        {random({3, 7, 5, 12}, GetParam(), 1), random({3, 12}, GetParam(), 2),
         random({3, 12}, GetParam(), 3)},
        "layer_norm_branch");
  }
}

TEST_P(DeviceOperationsOf, MasksAreThoseOfTheCpu) {
  const auto ones = at::ones({2, 70000}, at::TensorOptions(GetParam()));
  const auto masks = dropout_masks({0.3, 0.1}, pass_of(2), 4);
  const auto expected = dropout(ones, masks);
  auto there = pass_of(2);
  there.seeds.clear();  // those on the device suffice
  const Emulation emulation;
  EXPECT_TRUE(dropout(ones, masks).equal(expected));
  EXPECT_TRUE(dropout(ones, dropout_masks({0.3, 0.1}, there, 4)).equal(expected));
}

TEST_P(DeviceOperationsOf, Embedding) {
  const auto tokens =
      at::randint(11, {2, 3, 50}, make_generator(at::kCPU, 4), at::TensorOptions(at::kLong));
  // More positions than there are tokens.
  expect_same([&](const auto& in) { return embed(tokens, in[0], in[1], NumericalMode::exact); },
              {random({2, 11, 6}, GetParam(), 1), random({2, 60, 6}, GetParam(), 2)}, "embed");
}

torch::Tensor some_targets(std::int64_t models, std::int64_t tokens, std::int64_t vocabulary) {
  const auto targets = at::randint(vocabulary, {models, tokens}, make_generator(at::kCPU, 4),
                                   at::TensorOptions(at::kLong));
  return targets.masked_fill(targets.eq(3), -100);
}

/// Of queries, keys, values, decays and what is erased, as projections lie, and the last state.
TEST_P(DeviceOperationsOf, Recurrences) {
  const auto heads = [](std::int64_t width, std::uint64_t seed) {
    return random({2, 2, 40, 3, width}, GetParam(), seed).transpose(2, 3);
  };
  for (const std::int64_t decays : {0, 1, 6}) {
    for (const bool erases : {false, true}) {
      std::vector given{heads(6, 1), heads(6, 2) * 0.3, heads(5, 3)};
      if (decays > 0) given.push_back(-heads(decays, 4).abs());
      if (erases) given.push_back(heads(6, 5) * 0.3);
      const auto run = [&](const auto& in) {
        Recurrence of{.queries = in[0], .keys = in[1], .values = in[2]};
        if (decays > 0) of.log_decays = in[3];
        if (erases) of.erased = in.back();
        of.by_channel = decays > 1;
        EXPECT_TRUE(has_recurrence_kernel(of));
        const auto result = recurrence(of);
        return at::cat({result.outputs.flatten(), result.state.flatten()});
      };
      expect_same(run, given, "recurrence, decays of " + std::to_string(decays));
    }
  }
  // Features that leave no room for a chunk.
  const auto wide = heads(700, 1);
  const Recurrence of{.queries = wide, .keys = wide, .values = heads(32, 3)};
  EXPECT_TRUE(has_recurrence_kernel(of));
  const Emulation emulation;
  EXPECT_FALSE(has_recurrence_kernel(of));
}

TEST_P(DeviceOperationsOf, LinearCrossEntropy) {
  // More tokens than are done at once.
  const auto targets = some_targets(2, 1100, 23);
  expect_same(
      [&](const auto& in) {
        return linear_cross_entropy(in[0], in[1], targets, NumericalMode::exact);
      },
      {random({2, 1100, 6}, GetParam(), 1), random({2, 23, 6}, GetParam(), 2)},
      "linear_cross_entropy");
}

TEST_P(DeviceOperationsOf, ScoresOfTokens) {
  const auto targets = some_targets(2, 1100, 23);
  const auto features = random({2, 1100, 6}, GetParam(), 1);
  const auto embedding = random({2, 23, 6}, GetParam(), 2);
  const auto expected = score_tokens(features, embedding, targets, NumericalMode::exact);
  const Emulation emulation;
  const auto ours = score_tokens(features, embedding, targets, NumericalMode::exact);
  EXPECT_LE((ours.nll - expected.nll).abs().max().item<double>(), 10 * tolerance(GetParam()));
  EXPECT_TRUE(ours.correct.equal(expected.correct));
}

INSTANTIATE_TEST_SUITE_P(, DeviceOperationsOf, ::testing::Values(at::kFloat, at::kDouble),
                         [](const auto& given) { return std::string(toString(given.param)); });

/// Where a vocabulary is large, a piece holds the logits of one model: those of all would cross a
/// GPU's memory several times.
TEST(DeviceOperations, MakeLogitsOfFewModelsAtOnce) {
  const auto features = random({3, 600, 4}, at::kFloat, 1);
  const auto embedding = random({3, 10000, 4}, at::kFloat, 2);
  const auto targets = some_targets(3, 600, 10000);
  const Emulation emulation;
  const MemoryScope memory;
  const auto before = memory.peak_bytes();
  (void)linear_cross_entropy(features, embedding, targets, NumericalMode::exact);
  const auto of_gradients = static_cast<std::int64_t>(features.nbytes() + embedding.nbytes());
  EXPECT_LT(memory.peak_bytes() - before, 25'000'000 + of_gradients);
  EXPECT_GT(memory.peak_bytes() - before, 512 * 10000 * 4);
}

TEST(DeviceOperations, RoundFactorsInModeFast) {
  const auto targets = some_targets(2, 50, 23);
  const std::vector arguments{random({2, 50, 6}, at::kFloat, 1), random({2, 23, 6}, at::kFloat, 2)};
  const Emulation emulation;
  const auto loss = [&](NumericalMode mode) {
    return with_gradients(
        [&](const auto& in) { return linear_cross_entropy(in[0], in[1], targets, mode); },
        arguments);
  };
  const auto exact = loss(NumericalMode::exact);
  const auto fast = loss(NumericalMode::fast);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_FALSE(fast[i].equal(exact[i])) << i;
    EXPECT_LE((fast[i] - exact[i]).abs().max().item<double>(),
              0.03 * std::max(exact[i].abs().max().item<double>(), 1.0))
        << i;
  }
}

/// Scores of dot products and what values are mixed by, forward and backward.
TEST(DeviceOperations, RoundFactorsOfAttention) {
  const auto all = various_models();
  const std::vector<std::size_t> places{0, 1, 2};
  const auto step = [&](NumericalMode mode) {
    return step_of(all, places, at::kFloat, at::kCPU, From::spread, mode);
  };
  const auto exact = step(NumericalMode::exact);
  const Emulation emulation;
  const auto ours = step(NumericalMode::tf32);
  for (const auto place : places) {
    for (const auto& [name, gradient] : exact.gradients[place]) {
      const auto& rounded = ours.gradients[place].at(name);
      expect_close(rounded, gradient, name, 1e-2);
      // No other product is rounded here: LibTorch's are the CPU's.
      EXPECT_GT((rounded - gradient).abs().max().item<double>(), 0.0) << name;
    }
  }
}

/// Of a width that tensor cores take, with the loss of a part of a batch.
TEST(DeviceOperations, TakeTheOutputLayerAsOne) {
  const auto targets = some_targets(2, 70, 150);
  const auto counted = some_targets(2, 90, 150);
  const std::vector arguments{random({2, 70, 32}, at::kFloat, 1),
                              random({2, 150, 32}, at::kFloat, 2)};
  const auto loss = [&](NumericalMode mode, std::int64_t first, std::int64_t models) {
    std::vector<torch::Tensor> of_models;
    for (const auto& x : arguments) of_models.push_back(x.narrow(0, first, models));
    return with_gradients(
        [&](const auto& in) {
          return linear_cross_entropy(in[0], in[1], targets.narrow(0, first, models), mode,
                                      counted.narrow(0, first, models));
        },
        of_models);
  };
  const auto expected = loss(NumericalMode::exact, 0, 2);
  const Emulation emulation;
  for (const auto& [mode, allowed] :
       {std::pair(NumericalMode::tf32, 2e-3), {NumericalMode::fast, 2e-2}}) {
    const auto together = loss(mode, 0, 2);
    const auto alone = loss(mode, 0, 1);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_FALSE(together[i].equal(expected[i])) << i;
      EXPECT_LE((together[i] - expected[i]).abs().max().item<double>(),
                allowed * expected[i].abs().max().item<double>())
          << i;
      EXPECT_TRUE(alone[i].equal(together[i].narrow(0, 0, 1))) << i;
    }
  }
}

TEST_P(DeviceOperationsOf, ModelsOfVariousMechanisms) {
  const auto all = various_models();
  const std::vector<std::size_t> places{0, 1, 2, 3, 4, 5, 6, 7};
  const auto expected = step_of(all, places, GetParam());
  const Emulation emulation;
  const auto ours = step_of(all, places, GetParam());
  expect_close(ours.losses.detach(), expected.losses.detach(), "losses");
  expect_close(ours.nll.to(GetParam()), expected.nll.to(GetParam()), "scores");
  for (const auto place : places) {
    for (const auto& [name, gradient] : expected.gradients[place]) {
      expect_close(ours.gradients[place].at(name), gradient,
                   to_string(all[place].stack.front()) + " " + name);
    }
  }
}

TEST_P(DeviceOperationsOf, GradientsOfEveryParameter) {
  for (const auto& models : {test::models_of_all_pairs(37), test::third_of_all_pairs(128)}) {
    for (const auto& all : test::by_fused_form(models)) {
      std::vector<std::size_t> places(all.size());
      std::iota(places.begin(), places.end(), std::size_t{0});
      const auto truth = step_of(all, places, at::kDouble, at::kCPU, From::spread);
      const Emulation emulation;
      const auto ours = step_of(all, places, GetParam(), at::kCPU, From::spread);
      for (const auto place : places) {
        test::expect_gradients(ours.gradients[place], truth.gradients[place],
                               truth.gradients[place], GetParam(),
                               to_string(all[place].stack.front()));
      }
    }
  }
}

TEST_P(DeviceOperationsOf, AnArrayOfThreeAndEachAlone) {
  const auto all = various_models();
  const Emulation emulation;
  const std::vector<std::size_t> places{1, 2, 5};
  const auto together = step_of(all, places, GetParam());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto alone = step_of(all, {places[i]}, GetParam());
    const auto what = to_string(all[places[i]].stack.front());
    EXPECT_TRUE(together.losses[static_cast<std::int64_t>(i)].equal(alone.losses[0])) << what;
    EXPECT_TRUE(together.nll[static_cast<std::int64_t>(i)].equal(alone.nll[0])) << what;
    for (const auto& [name, gradient] : alone.gradients[0]) {
      EXPECT_TRUE(together.gradients[i].at(name).equal(gradient)) << what << " " << name;
    }
  }
}

/// Parameters of three models after some steps, by name; the second has no gradient at times.
std::map<std::string, torch::Tensor> trained(torch::ScalarType type) {
  const auto options = at::TensorOptions(type);
  const auto parameter = [&](const std::string& name, const std::vector<std::int64_t>& sizes,
                             Models models, Decay decay) {
    auto tensor = at::randn(sizes, make_generator(at::kCPU, name.size()), options);
    return Parameter{name, tensor.requires_grad_(true), std::move(models), {}, decay};
  };
  // One is larger than a piece of what a block does.
  const std::vector parameters{parameter("matrix", {3, 70, 71}, {0, 1, 2}, Decay::yes),
                               parameter("vectors", {2, 9}, {0, 2}, Decay::no),
                               parameter("own", {1, 5}, {1}, Decay::yes)};
  Optimizer optimizer(parameters, 3,
                      [](const Parameter& given) { return given.decay == Decay::yes; });
  for (std::int64_t step = 1; step <= 4; ++step) {
    for (const auto& given : parameters) {
      if (given.name == "vectors" && step == 2) continue;
      auto handle = given.tensor;
      handle.mutable_grad() =
          at::randn(given.tensor.sizes(),
                    make_generator(at::kCPU, static_cast<std::uint64_t>(step)), options);
    }
    optimizer.step(std::vector<ModelStep>{
        {.step = step, .learning_rate = 0.1, .weight_decay = 0.2, .clip_norm = 1.0},
        {.step = step + 7, .learning_rate = 0.01, .weight_decay = 0.0, .clip_norm = 1e9},
        {.step = step, .learning_rate = 0.05, .weight_decay = 0.5, .clip_norm = 30.0}});
    EXPECT_FALSE(parameters.front().tensor.grad().defined());
  }
  std::map<std::string, torch::Tensor> values;
  for (const auto& given : parameters) values[given.name] = given.tensor.detach();
  return values;
}

TEST_P(DeviceOperationsOf, StepsOfAdamW) {
  const auto expected = trained(GetParam());
  const Emulation emulation;
  for (const auto& [name, values] : trained(GetParam())) {
    expect_close(values, expected.at(name), name);
  }
}

TEST(DeviceOperations, LeaveWhatHasNoKernelToLibTorch) {
  const auto& operations = cuda_operations();
  EXPECT_TRUE(operations.has_form_of(kernels::topk_quarter()));
  // A component's own, though by the functions of one that has a form: these differ between
  // libraries that the kernels are linked into.
  const auto softmax = kernels::softmax();
  const kernels::RowNormalization own(softmax.kernel<float>(), softmax.kernel<double>());
  EXPECT_FALSE(operations.has_form_of(own));
  EXPECT_TRUE(operations.attention_fits(at::empty({1, 1, 1024, 128}), 1));
  EXPECT_FALSE(operations.attention_fits(at::empty({1, 1, 4096, 128}), 1));
}

}  // namespace
}  // namespace nas::nn
