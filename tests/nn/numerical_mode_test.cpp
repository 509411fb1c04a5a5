// Fused kernels against one LibTorch operation after the other.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include "core/error.hpp"
#include "genotype/mechanism_name.hpp"
#include "instruments/environment.hpp"
#include "kernels/instruction_set.hpp"
#include "kernels/unit_vectors.hpp"
#include "lone_layer.hpp"
#include "mechanisms.hpp"
#include "nn/transformer.hpp"
#include "ops/cpu_products.hpp"
#include "ops/embedding.hpp"
#include "ops/loss.hpp"
#include "ops/product.hpp"
#include "ops/score_vectors.hpp"

namespace nas::nn {
namespace {

using test::both_semantics;

/// What one layer computes, by name: "y", "x" (its gradient), "q_proj.weight", ...
using Tensors = std::map<std::string, torch::Tensor>;

struct Case {
  AttentionShape shape;
  at::ScalarType type = at::kFloat;
  std::int64_t batch = 2;
  double dropout = 0.2;
};

Tensors layer_pass(Mechanism mechanism, Semantics semantics, const Case& given,
                   NumericalMode mode) {
  mechanism.set("attention_dropout", given.dropout);
  std::vector<Parameter> parameters;
  test::LoneLayer layer(mechanism, given.shape, semantics, ParameterScope(parameters, mode));
  move_to(parameters, at::kCPU, given.type);
  auto generator = at::detail::createCPUGenerator(5);
  const auto draw = [&](at::IntArrayRef shape, double mean, double spread) {
    return at::empty(shape, at::TensorOptions(at::kDouble))
        .normal_(mean, spread, generator)
        .to(given.type);
  };
  {
    const at::NoGradGuard no_grad;
    // Far from any special value, and such that scores have the spread of a trained model's.
    const double spread = 1.5 / std::sqrt(static_cast<double>(given.shape.width));
    for (auto& parameter : parameters) {
      parameter.tensor.copy_(draw(parameter.tensor.sizes(), 0.05, spread));
    }
  }
  const std::vector<std::int64_t> sizes{given.batch, given.shape.context, given.shape.width};
  auto x = draw(sizes, 0, 1).requires_grad_(true);
  auto residual = draw(sizes, 0, 1).requires_grad_(true);
  const auto direction = draw(sizes, 0, 1);
  const Pass pass{.training = true, .seeds = {3}};
  Tensors tensors;
  tensors["y"] = layer.forward(x, residual, pass, 1);
  (tensors["y"] * direction).sum().backward();
  tensors["x"] = x.grad();
  if (residual.grad().defined()) tensors["residual"] = residual.grad();
  for (const auto& parameter : parameters) tensors[parameter.name] = parameter.tensor.grad();
  return tensors;
}

/// Each value within 1e-4 of the tensor's largest (1e-10 in double) and 1e-6 of the largest
/// gradient of the case, beside which a smaller one is noise; 3e-5 of that where thousands of numbers
/// cancel (shifted_abs has one number a layer), as is left of them by AVX-512, AVX2 and SSE2.
void expect_equal(const Tensors& fused, const Tensors& reference, at::ScalarType type,
                  const std::string& what) {
  const bool single = type == at::kFloat;
  double largest = 0.0;
  for (const auto& [name, tensor] : reference) {
    if (name != "y") largest = std::max(largest, tensor.abs().max().item<double>());
  }
  ASSERT_EQ(fused.size(), reference.size()) << what;
  for (const auto& [name, expected] : reference) {
    const auto& given = fused.at(name);
    ASSERT_TRUE(given.defined()) << what << " " << name;
    const double noise = !single ? 1e-12 : expected.numel() == 1 ? 3e-5 : 1e-6;
    const double error = (given - expected).abs().max().item<double>();
    EXPECT_LE(error,
              (single ? 1e-4 : 1e-10) * expected.abs().max().item<double>() + noise * largest)
        << what << " " << name << " on " << environment().processor;
  }
}

void expect_fused_equals_reference(const Mechanism& mechanism, Semantics semantics,
                                   const Case& given) {
  expect_equal(layer_pass(mechanism, semantics, given, NumericalMode::exact),
               layer_pass(mechanism, semantics, given, NumericalMode::reference), given.type,
               std::string(to_string(semantics)) + " " + to_string(mechanism) + " tokens " +
                   std::to_string(given.shape.context) + " head " +
                   std::to_string(given.shape.head_width()));
}

/// Every pair of the genes that the kernel sees, the others at their first option.
std::vector<Mechanism> kernel_mechanisms() {
  return test::combinations([](std::string_view gene) {
    return gene == "gating" ? std::vector<std::string>{"none"} : components().keys(gene);
  });
}

TEST(FusedForms, OfEveryGatingAndTemperatureEqualTheReference) {
  const auto mechanisms = test::combinations([](std::string_view gene) {
    const bool varies = gene == "gating" || gene == "temperature";
    return varies ? components().keys(gene)
                  : std::vector<std::string>{gene == "similarity" ? "cosine" : "softmax"};
  });
  for (const auto& mechanism : mechanisms) {
    const auto forms = fused_forms(mechanism);
    EXPECT_TRUE(forms.gating && forms.temperature) << to_string(mechanism);
    for (const auto semantics : both_semantics()) {
      expect_fused_equals_reference(mechanism, semantics, {{24, 3, 19}, at::kDouble});
      expect_fused_equals_reference(mechanism, semantics, {{32, 1, 33}, at::kFloat});
    }
  }
}

TEST(FusedAttention, EqualsTheReferenceInDoubleAndFloat) {
  constexpr std::array<std::int64_t, 4> kTokens{31, 70, 1, 33};
  std::size_t number = 0;
  for (const auto& mechanism : kernel_mechanisms()) {
    const auto tokens = kTokens[number++ % kTokens.size()];
    expect_fused_equals_reference(mechanism, Semantics::corrected,
                                  {{16, 2, tokens}, at::kDouble, 2, 0.2});
    // The factor cancels: what is left of its gradient is rounding.
    if (mechanism.word("normalization") == "relu_norm" &&
        mechanism.word("temperature") == "log_length")
      continue;
    expect_fused_equals_reference(mechanism, Semantics::corrected, {{64, 2, 33}, at::kFloat});
  }
}

TEST(FusedAttention, EqualsTheReferenceAtEveryLengthAndHeadSize) {
  for (auto mechanism : test::single_options(Semantics::corrected)) {
    for (const std::int64_t tokens : {1, 32, 33, 128, 200}) {
      for (const std::int64_t width : {8, 64}) {
        expect_fused_equals_reference(mechanism, Semantics::corrected,
                                      {{2 * width, 2, tokens}, at::kFloat, 1});
      }
    }
  }
}

/// Scores of up to 300 and equal ones; what a normalization computes must stay finite and add up.
TEST(FusedAttention, LargeAndEqualScoresStayFinite) {
  for (const auto& key : components().keys("normalization")) {
    std::vector<Parameter> parameters;
    LayerContext context;
    context.shape.heads = 1;
    const auto normalization = normalizations().at(key).make(context, ParameterScope(parameters));
    {
      const at::NoGradGuard no_grad;
      // A sink of no weight, as for the rows' function without sinks.
      for (auto& parameter : parameters) {
        parameter.tensor.fill_(-std::numeric_limits<double>::infinity());
      }
    }
    const auto row_kernel = normalization->fused();
    ASSERT_EQ(row_kernel.has_value(), !normalization->reads_order()) << key;
    if (!row_kernel) continue;
    for (const float scale : {0.0F, 1.0F, -1.0F, 300.0F, -300.0F}) {
      for (const std::int64_t visible : {1, 3, 16, 17, 128}) {
        auto row = at::full({kernels::padded(visible)}, -std::numeric_limits<float>::infinity());
        row.narrow(0, 0, visible).copy_(at::linspace(-1.0, 1.0, visible).abs().mul(scale));
        const auto expected =
            normalization
                ->weights(row.narrow(0, 0, visible).expand({1, 1, 1, visible, visible}),
                          at::ones({visible, visible}, at::TensorOptions(at::kBool)).tril())
                .select(3, visible - 1)
                .detach()
                .flatten();
        const auto statistic = row_kernel->kernel<float>().forward(row.data_ptr<float>(), visible,
                                                                   row.numel(), visible);
        // Which of equal scores are among the largest is nobody's business.
        const auto sorted = [](const torch::Tensor& x) { return std::get<0>(x.sort()); };
        EXPECT_TRUE(sorted(row.narrow(0, 0, visible)).allclose(sorted(expected), 1e-4, 1e-6))
            << key << " " << scale << " " << visible << "\n"
            << row << expected;
        EXPECT_EQ(row.narrow(0, visible, row.numel() - visible).count_nonzero().item<int>(), 0);
        const auto gradient = at::ones_like(row);
        row_kernel->kernel<float>().backward(row.data_ptr<float>(), gradient.data_ptr<float>(),
                                             row.numel(), statistic);
        EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << key << " " << scale;
      }
    }
  }
}

/// A diverging training is noticed by its NaN, so no row may swallow one.
void expect_nan_stays() {
  for (const auto& key : components().keys("normalization")) {
    std::vector<Parameter> parameters;
    const auto rows =
        normalizations().at(key).make(LayerContext{}, ParameterScope(parameters))->fused();
    for (const std::int64_t position : {0, 5, 19}) {
      auto row = at::full({kernels::padded(20)}, -std::numeric_limits<float>::infinity());
      row.narrow(0, 0, 20).copy_(at::linspace(-1.0, 1.0, 20));
      row[position].fill_(std::numeric_limits<float>::quiet_NaN());
      rows->kernel<float>().forward(row.data_ptr<float>(), 20, row.numel(), 20);
      EXPECT_TRUE(row.isnan().any().item<bool>())
          << key << " " << position << " by " << kernels::instruction_set();
    }
  }
}

TEST(FusedAttention, NaNStaysNaN) {
  const auto all = kernels::instruction_sets();
  for (const auto& name : all) {
    kernels::use_instruction_set(name);
    expect_nan_stays();
  }
  kernels::use_instruction_set(all.front());
}

/// Newton's steps from the left must end, whatever rounding does to them.
TEST(FusedAttention, ThresholdsAreFoundForAnyScores) {
  auto generator = at::detail::createCPUGenerator(7);
  for (const auto& rows : {kernels::sparsemax(), kernels::entmax15()}) {
    for (const double spread : {1e-6, 1e-3, 1e-1, 1.0, 30.0}) {
      for (int trial = 0; trial < 4000; ++trial) {
        const std::int64_t visible = 1 + trial % 128;
        auto row = at::full({kernels::padded(visible)}, -std::numeric_limits<float>::infinity());
        row.narrow(0, 0, visible).normal_(trial % 3, spread, generator);
        rows.kernel<float>().forward(row.data_ptr<float>(), visible, row.numel(), visible);
        const auto sum = row.sum().item<double>();
        ASSERT_NEAR(sum, 1.0, 1e-4) << spread << " " << visible;
      }
    }
  }
}

/// The kernels of every instruction set that this processor has.
TEST(FusedAttention, EveryInstructionSetAgrees) {
  const auto all = kernels::instruction_sets();
  ASSERT_FALSE(all.empty());
  for (const auto& name : all) {
    kernels::use_instruction_set(name);
    EXPECT_EQ(kernels::instruction_set(), name);
    for (const auto type : {at::kFloat, at::kDouble}) {
      for (const auto& mechanism : test::single_options(Semantics::corrected)) {
        expect_fused_equals_reference(mechanism, Semantics::corrected, {{24, 2, 37}, type});
      }
    }
  }
  kernels::use_instruction_set(all.front());
}

/// (B, H, T, d) as (1, B, T, H d).
torch::Tensor side_by_side(const torch::Tensor& x) {
  return x.transpose(1, 2).flatten(2).unsqueeze(0);
}

/// Of one model.
Masks no_masks() { return dropout_masks(0.0, Pass{}, 0, 1); }

/// Arguments of e^(2 q) e^(2 k) beyond the range of numbers.
TEST(FusedAttention, AdditiveScoresOfLargeVectorsAreExact) {
  for (const double size : {1.0, 15.0, 40.0, 300.0}) {
    const auto options = at::TensorOptions(at::kFloat);
    const auto q = at::linspace(-size, size, 2 * 40 * 8, options).view({1, 2, 40, 8});
    const auto k = q.flip(2) * -0.9;
    const auto v = at::linspace(-1, 1, 8, options);
    const auto values = at::eye(40, options).expand({1, 2, 40, 40});
    const auto weights =
        fused_attention({{{kernels::Score::additive, kernels::softmax(), 0}}, no_masks()},
                        {side_by_side(q), side_by_side(k), side_by_side(values.narrow(3, 0, 8)),
                         at::ones({1, 1, 2, 40, 1}, options), v.unsqueeze(0)})[0];
    const auto raw = (q.unsqueeze(3) + k.unsqueeze(2)).tanh().matmul(v);
    const auto expected = softmax_over(raw, at::ones({40, 40}, at::TensorOptions(at::kBool)).tril())
                              .matmul(values.narrow(3, 0, 8))
                              .transpose(1, 2)
                              .flatten(2);
    EXPECT_TRUE(weights.allclose(expected, 1e-4, 1e-5)) << size;
  }
}

#ifdef _OPENMP
std::mutex rows_mutex;
std::set<std::thread::id> threads_of_rows;

float remember_thread(float* /*row*/, std::int64_t /*visible*/, std::int64_t /*size*/,
                      std::int64_t /*tokens*/) {
  const std::lock_guard lock(rows_mutex);
  threads_of_rows.insert(std::this_thread::get_id());
  return 0.0F;
}
#endif

/// Compiled without OpenMP, LibTorch's loops would silently use one thread.
TEST(FusedAttention, UsesTheThreadsThatItIsGiven) {
#ifdef _OPENMP
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  const auto x = at::ones({1, 4, 40, 16});
  const kernels::RowNormalization rows({.forward = &remember_thread, .backward = nullptr}, {});
  fused_attention({{{kernels::Score::product, rows}}, no_masks()},
                  {x, x, x, at::ones({1, 4, 2, 40, 1})});
  at::set_num_threads(before);
  EXPECT_EQ(threads_of_rows.size(), 2U);
#else
  GTEST_SKIP() << "built without OpenMP";
#endif
}

Architecture small_architecture(const Mechanism& mechanism) {
  return {.stack = {mechanism}, .width = 24, .heads = 3, .context = 19, .vocabulary = 1037};
}

struct Step {
  double loss = 0.0;
  Tensors gradients;
};

Step model_step(const Mechanism& mechanism, NumericalMode mode, at::ScalarType type) {
  Transformer model(small_architecture(mechanism), mode);
  model.initialise(1, 0);
  {
    // relu_norm is steepest at 0, where scores lie at the start.
    const at::NoGradGuard no_grad;
    for (auto& [name, parameter] : model.parameters()) {
      if (name.find("_proj.weight") != std::string::npos) parameter.mul_(10.0);
    }
  }
  model.to(at::kCPU, type);
  auto generator = at::detail::createCPUGenerator(5);
  const auto tokens = at::randint(1037, {70, 19}, generator, at::TensorOptions(at::kLong));
  auto targets = at::randint(1037, {70, 19}, generator, at::TensorOptions(at::kLong));
  targets.slice(1, 0, 3).fill_(-100);
  const auto loss = model.loss(tokens, targets, Pass{.training = true, .seeds = {2}});
  (loss * 0.5).backward();
  Step step{.loss = loss.item<double>(), .gradients = {}};
  for (const auto& [name, parameter] : model.parameters()) {
    step.gradients[name] = parameter.grad();
  }
  return step;
}

TEST(NumericalMode, LossAndGradientsOfTheModelAgree) {
  for (const auto& mechanism : test::single_options(Semantics::corrected)) {
    for (const auto type : {at::kFloat, at::kDouble}) {
      const auto exact = model_step(mechanism, NumericalMode::exact, type);
      const auto reference = model_step(mechanism, NumericalMode::reference, type);
      const auto name = to_string(mechanism);
      EXPECT_NEAR(exact.loss, reference.loss, type == at::kFloat ? 1e-5 : 1e-12) << name;
      expect_equal(exact.gradients, reference.gradients, type, name);
    }
  }
}

TEST(NumericalMode, RoundedProductsAreCloseToExactOnes) {
  for (const auto& mechanism : test::single_options(Semantics::corrected)) {
    const auto fast = model_step(mechanism, NumericalMode::fast, at::kFloat);
    const auto exact = model_step(mechanism, NumericalMode::exact, at::kFloat);
    EXPECT_NEAR(fast.loss, exact.loss, 2e-3) << to_string(mechanism);
    // Where weights jump with the scores (relu_norm, top_k), gradients do, too.
    if (mechanism.word("normalization") != "softmax" || mechanism.word("similarity") == "cosine")
      continue;
    const auto& given = fast.gradients.at("embedding.weight");
    const auto& expected = exact.gradients.at("embedding.weight");
    EXPECT_LT((given - expected).norm().item<double>(), 0.03 * expected.norm().item<double>())
        << to_string(mechanism);
  }
}

TEST(NumericalMode, TokensScoreAlike) {
  auto generator = at::detail::createCPUGenerator(5);
  const auto features = at::empty({2, 700, 24}).normal_(0, 1, generator);
  const auto embedding = at::empty({2, 1037, 24}).normal_(0, 1, generator);
  auto targets = at::randint(1037, {2, 700}, generator, at::TensorOptions(at::kLong));
  const auto likeliest = features.bmm(embedding.transpose(1, 2)).argmax(2);
  targets.slice(1, 0, 300).copy_(likeliest.slice(1, 0, 300));
  targets.slice(1, 10, 20).fill_(-100);
  const auto reference = score_tokens(features, embedding, targets, NumericalMode::reference);
  const auto exact = score_tokens(features, embedding, targets, NumericalMode::exact);
  const auto fast = score_tokens(features, embedding, targets, NumericalMode::fast);
  EXPECT_TRUE(exact.nll.allclose(reference.nll, 1e-5, 1e-5));
  EXPECT_TRUE(fast.nll.allclose(reference.nll, 2e-2, 0.2));
  EXPECT_TRUE(exact.correct.equal(reference.correct));
  EXPECT_GE(exact.correct.sum().item<int>(), 580);
  EXPECT_EQ(exact.nll.slice(1, 10, 20).abs().max().item<double>(), 0.0);
}

/// Also those that are too short to have a direction.
TEST(UnitVectors, AreThoseOfTheFormula) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    for (const std::int64_t width : {1, 5, 16, 33}) {
      auto generator = at::detail::createCPUGenerator(5);
      const auto draw = [&] {
        return at::empty({2, 3, 7, 2 * width}, at::TensorOptions(type)).normal_(0, 1, generator);
      };
      auto q = draw();
      auto k = draw();
      q[0][1][2].zero_();
      q[0][2][3].fill_(1e-15);
      k[1][0][1].mul_(1e6);
      q.requires_grad_(true);
      k.requires_grad_(true);
      const auto weight = draw();
      const auto given =
          score_vectors(q, k, {{first_models(q.size(0)), {.kind = VectorMap::Kind::unit}}}, width);
      (given[0] * weight + given[1] * weight.flip(1)).sum().backward();
      const auto by_operations = [&](const torch::Tensor& x) {
        return unit(x.view({2, 3, 7, 2, width})).flatten(3);
      };
      const auto gradients = torch::autograd::grad(
          {(by_operations(q) * weight + by_operations(k) * weight.flip(1)).sum()}, {q, k});
      const auto close = [&](const torch::Tensor& a, const torch::Tensor& b) {
        const double digits = type == at::kFloat ? 1e-5 : 1e-13;
        return a.allclose(b, digits, digits);
      };
      EXPECT_TRUE(close(given[0], by_operations(q))) << width;
      EXPECT_TRUE(close(given[1], by_operations(k))) << width;
      EXPECT_TRUE(close(q.grad(), gradients[0])) << width;
      EXPECT_TRUE(close(k.grad(), gradients[1])) << width;
    }
  }
}

TEST(UnitVectors, NaNStaysNaN) {
  for (const std::int64_t position : {0, 5, 19}) {
    auto x = at::ones({20});
    x[position].fill_(std::numeric_limits<float>::quiet_NaN());
    const auto y = at::zeros({20});
    float inverse_length = 0.0F;
    kernels::unit_vectors(1, 20, x.data_ptr<float>(), y.data_ptr<float>(), &inverse_length);
    EXPECT_TRUE(y.isnan().all().item<bool>()) << position;
  }
}

TEST(Embedding, EqualsTheReference) {
  auto generator = at::detail::createCPUGenerator(5);
  const auto draw = [&](at::IntArrayRef sizes) {
    return at::empty(sizes, at::TensorOptions(at::kDouble))
        .normal_(0, 1, generator)
        .requires_grad_(true);
  };
  const auto embedding = draw({2, 11, 5});
  const auto positions = draw({2, 9, 5});  // two more than there are tokens
  const auto weight = draw({2, 3, 7, 5}).detach();
  auto tokens = at::randint(10, {2, 3, 7}, generator, at::TensorOptions(at::kLong));
  const auto gradients = [&](NumericalMode mode) {
    const auto y = embed(tokens, embedding, positions, mode);
    auto by = torch::autograd::grad({(y * weight).sum()}, {embedding, positions});
    by.push_back(y);
    return by;
  };
  const auto exact = gradients(NumericalMode::exact);
  const auto reference = gradients(NumericalMode::reference);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_TRUE(exact[i].allclose(reference[i], 1e-14, 1e-14)) << i;
  }
  for (const std::int64_t wrong : {-1, 11}) {
    tokens[1][2][6].fill_(wrong);
    try {
      embed(tokens, embedding, positions, NumericalMode::exact);
      FAIL() << wrong;
    } catch (const c10::IndexError& error) {
      EXPECT_NE(
          std::string(error.what()).find("token " + std::to_string(wrong) + " must be in [0, 11)"),
          std::string::npos)
          << error.what();
    }
  }
}

TEST(Linear, MultipliesAnyStridesAndSizes) {
  auto generator = at::detail::createCPUGenerator(5);
  for (const auto type : {at::kFloat, at::kDouble}) {
    const auto draw = [&](std::int64_t rows, std::int64_t columns) {
      return at::empty({2, rows, columns}, at::TensorOptions(type)).normal_(0, 1, generator);
    };
    for (const auto& [m, k, n] : {std::array<std::int64_t, 3>{1, 1, 1},
                                  {7, 129, 33},
                                  {65, 300, 100},
                                  {130, 5, 64},
                                  {64, 128, 31}}) {
      // The second model has no bias.
      const Biases bias{draw(1, n)[0], {0, -1}};
      for (const bool transposed : {false, true}) {
        const auto x = transposed ? draw(k, m).transpose(1, 2) : draw(m, k);
        const auto weight = transposed ? draw(k, n).transpose(1, 2) : draw(n, k);
        auto expected = x.to(at::kDouble).bmm(weight.to(at::kDouble).transpose(1, 2));
        expected[0] += bias.values.to(at::kDouble)[0];
        const auto y = linear(x, weight, bias, NumericalMode::exact).to(at::kDouble);
        EXPECT_LT((y - expected).abs().max().item<double>(),
                  (type == at::kFloat ? 1e-5 : 1e-13) * (1 + expected.abs().max().item<double>()))
            << m << " " << k << " " << n;
      }
    }
  }
}

/// LibTorch was told to multiply in TensorFloat-32 before, as by an environment variable.
TEST(NumericalMode, DecidesAboutTensorFloat32AloneOnCudaDevices) {
  auto& context = at::globalContext();
  const auto in_tf32 = [&] { return context.allowTF32CuBLAS(); };
  context.setAllowTF32CuBLAS(true);
  set_float_products(at::kCPU, NumericalMode::exact);
  EXPECT_TRUE(in_tf32());  // nothing is multiplied there
  set_float_products(at::kCUDA, NumericalMode::exact);
  EXPECT_FALSE(in_tf32());
  set_float_products(at::kCUDA, NumericalMode::tf32);
  EXPECT_TRUE(in_tf32());
  for (const auto mode : {NumericalMode::reference, NumericalMode::fast}) {
    set_float_products(at::kCUDA, NumericalMode::tf32);
    set_float_products(at::kCUDA, mode);
    EXPECT_FALSE(in_tf32()) << to_string(mode);
  }
}

/// What a requirement says against a mode on a device; empty: it is allowed.
std::string refusal(NumericalMode mode, const std::string& device,
                    void (*require)(NumericalMode, const std::string&) = require_numerical_mode) {
  try {
    require(mode, device);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST(Determinism, IsLibTorchsAndCublassOnAGpu) {
  constexpr const char* kWorkspace = "CUBLAS_WORKSPACE_CONFIG";
  unsetenv(kWorkspace);
  auto& context = at::globalContext();
  EXPECT_EQ(refusal(NumericalMode::reference, "cpu", require_determinism), "");
  EXPECT_FALSE(context.deterministicAlgorithms()) << "the CPU needs none of them";
  EXPECT_EQ(std::getenv(kWorkspace), nullptr);
  EXPECT_EQ(refusal(NumericalMode::reference, "cuda:0", require_determinism),
            "evaluation.determinism = bitwise on a CUDA device, must be relaxed with "
            "evaluation.numerical_mode = reference: LibTorch's backward operations add in no fixed "
            "order");
  EXPECT_FALSE(context.deterministicAlgorithms());
  EXPECT_EQ(refusal(NumericalMode::exact, "cuda:0", require_determinism), "");
  EXPECT_TRUE(context.deterministicAlgorithms());
  EXPECT_STREQ(std::getenv(kWorkspace), ":4096:8");
  setenv(kWorkspace, ":16:8", 1);
  EXPECT_EQ(refusal(NumericalMode::fast, "cuda:0", require_determinism), "");
  EXPECT_STREQ(std::getenv(kWorkspace), ":16:8");
  setenv(kWorkspace, ":0:0", 1);
  EXPECT_EQ(refusal(NumericalMode::tf32, "cuda:0", require_determinism),
            "evaluation.determinism = bitwise, but CUBLAS_WORKSPACE_CONFIG = :0:0 in the "
            "environment, must be unset, :4096:8 or :16:8");
  unsetenv(kWorkspace);
  context.setDeterministicAlgorithms(false, false);
}

TEST(NumericalMode, IsRefusedWhereProductsWouldBeOthers) {
  constexpr const char* kOverride = "NVIDIA_TF32_OVERRIDE";
  unsetenv(kOverride);
  EXPECT_EQ(refusal(NumericalMode::exact, "cpu"), "");
  EXPECT_EQ(refusal(NumericalMode::tf32, "cpu"), "");
  EXPECT_EQ(refusal(NumericalMode::tf32, "cuda:0"), "");
  setenv(kOverride, "1", 1);
  EXPECT_EQ(refusal(NumericalMode::exact, "cpu"), "");
  EXPECT_EQ(refusal(NumericalMode::tf32, "cuda:0"), "");
  EXPECT_EQ(refusal(NumericalMode::fast, "cuda:0"), "");
  for (const auto mode : {NumericalMode::reference, NumericalMode::exact}) {
    EXPECT_EQ(refusal(mode, "cuda:1"),
              "evaluation.numerical_mode = " + std::string(to_string(mode)) +
                  ", but NVIDIA_TF32_OVERRIDE = 1 in the environment makes cuBLAS multiply "
                  "otherwise: unset it");
  }
  EXPECT_EQ(environment().variables.at(kOverride), "1");
  setenv(kOverride, "0", 1);
  EXPECT_EQ(refusal(NumericalMode::exact, "cuda:0"), "");
  EXPECT_NE(refusal(NumericalMode::tf32, "cuda:0").find("NVIDIA_TF32_OVERRIDE = 0"),
            std::string::npos);
  unsetenv(kOverride);
  EXPECT_EQ(environment().variables.count(kOverride), 0);
}

TEST(NumericalMode, TheEnvironmentTellsWhatDecidesAboutBits) {
  EXPECT_FALSE(environment().torch_capability.empty());
  EXPECT_FALSE(environment().libc.empty());
  for (const char* name :
       {"ATEN_CPU_CAPABILITY", "MKL_CBWR", "OPENBLAS_CORETYPE", "OMP_NUM_THREADS",
        "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "CUBLAS_WORKSPACE_CONFIG"}) {
    const char* before = std::getenv(name);
    const std::string kept = before == nullptr ? "" : before;
    setenv(name, "x=y", 1);
    EXPECT_EQ(to_json(environment()).at("variables").at(name), "x=y");
    before == nullptr ? unsetenv(name) : setenv(name, kept.c_str(), 1);
  }
  setenv("OMP_WAIT_POLICY", "PASSIVE", 1);
  EXPECT_EQ(environment().variables.count("OMP_WAIT_POLICY"), 0) << "how threads wait is no result";
}

/// Where float32 products are as they are, the mode computes what `exact` does.
TEST(NumericalMode, Tf32IsExactButForProductsOfADevice) {
  const auto loss = [](NumericalMode mode) {
    Architecture architecture{
        .stack = {parse_mechanism("additive|softmax|output_gate|learned|bias|0",
                                  Semantics::corrected)},
        .context = 12,
        .vocabulary = 31};
    TransformerArray models({architecture, architecture}, mode);
    models.initialise({{1, 0}, {2, 0}});
    EXPECT_EQ(models.numerical_mode(), mode);
    const auto tokens = at::arange(2 * 3 * 12).remainder(31).view({2, 3, 12});
    return models.loss(tokens, tokens.roll(1, 2), Pass{}).detach();
  };
  for (const auto mode : {NumericalMode::tf32, NumericalMode::exact}) use_cpu_products(mode, {});
  EXPECT_TRUE(loss(NumericalMode::tf32).equal(loss(NumericalMode::exact)));
}

}  // namespace
}  // namespace nas::nn
