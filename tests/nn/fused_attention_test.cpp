#include "ops/fused_attention.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace nas::nn {
namespace {

constexpr std::int64_t kSequences = 2;
constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kTokens = 45;
constexpr std::int64_t kWidth = 8;

Pass pass_of(std::int64_t models) {
  Pass pass;
  pass.training = true;
  for (std::int64_t r = 0; r < models; ++r) pass.seeds.push_back(static_cast<std::uint64_t>(r + 7));
  return pass;
}

/// Three models: a window with sinks, forget gates with biases by distance, all but sinks.
ArrayAttention three_models() {
  ArrayAttention array;
  array.of_models = {
      {.normalization = kernels::sink(), .sinks = 0, .window = 10, .globals = 2},
      {.normalization = kernels::softmax(), .distance_biases = 1, .sums = 0},
      {.normalization = kernels::sigmoid_attn(), .distance_biases = 0, .sums = 1, .window = 33}};
  array.masks = dropout_masks(0.2, pass_of(3), 5, 3);
  return array;
}

AttentionTensors random_tensors(std::int64_t kv_heads, at::ScalarType type) {
  torch::manual_seed(3);
  const auto options = at::TensorOptions(type);
  const auto vectors = [&](std::int64_t heads) {
    return at::randn({3, kSequences, kTokens, heads * kWidth}, options);
  };
  AttentionTensors tensors{vectors(kHeads), vectors(kv_heads), vectors(kv_heads),
                           at::rand({3, kSequences, kHeads, kTokens, 1}, options) + 0.2};
  tensors.distance_biases = at::randn({2, kHeads, kTokens}, options);
  // After much was forgotten, and a lot at once: neighbours on either side are as near as without.
  tensors.sums = at::rand({2, kSequences, kHeads, kTokens}, at::kDouble).neg().cumsum(-1) - 3000.0;
  tensors.sums.slice(-1, 20).sub_(500.0);
  tensors.sinks = at::randn({1, kHeads}, options);
  return tensors;
}

std::vector<torch::Tensor> list_of(const AttentionTensors& tensors) {
  return {
      tensors.q,    tensors.k,    tensors.v, tensors.inverse_temperature, tensors.distance_biases,
      tensors.sums, tensors.sinks};
}

/// The same numbers, maybe of another type, to be differentiated by.
AttentionTensors leaves(const AttentionTensors& tensors, std::optional<at::ScalarType> as = {}) {
  const auto leaf = [&](const torch::Tensor& x) {
    return x.defined() ? x.detach().clone().to(as.value_or(x.scalar_type())).requires_grad_() : x;
  };
  AttentionTensors made{leaf(tensors.q), leaf(tensors.k), leaf(tensors.v),
                        leaf(tensors.inverse_temperature)};
  made.distance_biases = leaf(tensors.distance_biases);
  made.sums = leaf(tensors.sums);
  made.sinks = leaf(tensors.sinks);
  return made;
}

/// By LibTorch's operations, with all scores.
torch::Tensor by_formulas(const ArrayAttention& array, const AttentionTensors& tensors) {
  const auto heads = [](const torch::Tensor& x) {
    return x.unflatten(2, {-1, kWidth}).transpose(1, 2);  // (B, heads, T, d)
  };
  const auto tokens = tensors.q.size(2), num_heads = tensors.inverse_temperature.size(2);
  const auto steps = at::arange(tokens);
  const auto distance = steps.unsqueeze(1) - steps;  // i - j
  std::vector<torch::Tensor> outputs;
  std::vector<torch::Tensor> ones;
  for (std::size_t r = 0; r < array.of_models.size(); ++r) {
    const auto& model = array.of_models[r];
    const auto index = static_cast<std::int64_t>(r);
    const auto q = heads(tensors.q[index]);
    const auto shared = [&](const torch::Tensor& x) {
      const auto of_groups = heads(x[index]);
      return of_groups.repeat_interleave(num_heads / of_groups.size(1), 1);
    };
    auto scores = q.matmul(shared(tensors.k).transpose(2, 3)) * tensors.inverse_temperature[index];
    if (model.distance_biases >= 0) {
      const auto table = tensors.distance_biases[model.distance_biases];
      scores =
          scores +
          table.index_select(1, distance.clamp_min(0).flatten()).view({num_heads, tokens, tokens});
    }
    if (model.sums >= 0) {
      const auto c = tensors.sums[model.sums];
      scores = scores + (c.unsqueeze(3) - c.unsqueeze(2)).to(scores.scalar_type());
    }
    auto seen = distance.ge(0);
    if (model.window > 0) seen = seen & (distance.lt(model.window) | steps.lt(model.globals));
    scores = scores.masked_fill(~seen, -std::numeric_limits<double>::infinity());
    torch::Tensor weights;
    if (model.sinks >= 0) {
      const auto sinks = tensors.sinks[model.sinks].view({1, num_heads, 1, 1});
      weights = at::cat({sinks.expand({tensors.q.size(1), num_heads, tokens, 1}), scores}, 3)
                    .softmax(3)
                    .narrow(3, 1, tokens);
    } else if (model.normalization.kind() == kernels::RowNormalization::Kind::sigmoid_attn) {
      weights = (scores - seen.sum(1, true).to(scores.scalar_type()).log()).sigmoid();
    } else {
      weights = scores.softmax(3);
    }
    ones.push_back(at::ones_like(weights));
    outputs.push_back(weights);
  }
  // Masks are of a whole array's weights.
  const auto dropped = at::stack(outputs) * dropout(at::stack(ones), array.masks);
  std::vector<torch::Tensor> mixed;
  for (std::int64_t r = 0; r < dropped.size(0); ++r) {
    const auto of_groups = heads(tensors.v[r]);
    const auto v = of_groups.repeat_interleave(num_heads / of_groups.size(1), 1);
    mixed.push_back(dropped[r].matmul(v).transpose(1, 2).flatten(2));
  }
  return at::stack(mixed);
}

/// The output and gradients w.r.t. list_of().
std::vector<torch::Tensor> passes(const torch::Tensor& output, const AttentionTensors& inputs) {
  output.backward(at::arange(output.numel(), output.options()).sin().view(output.sizes()));
  std::vector<torch::Tensor> results{output.detach()};
  for (const auto& input : list_of(inputs)) {
    if (input.defined()) results.push_back(input.grad());
  }
  return results;
}

void expect_near(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b,
                 double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_LE((a[i] - b[i]).abs().max().item<double>(),
              tolerance * b[i].abs().max().clamp_min(1).item<double>())
        << i;
  }
}

TEST(FusedAttention, IsTheFormulasWithAllItsForms) {
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    for (const auto type : {at::kFloat, at::kDouble}) {
      const auto tensors = random_tensors(kv_heads, type);
      const auto ours = leaves(tensors);
      const auto theirs = leaves(tensors);
      const auto a = passes(fused_attention(three_models(), ours), ours);
      const auto b = passes(by_formulas(three_models(), theirs), theirs);
      for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].scalar_type(), b[i].scalar_type());
      expect_near(a, b, type == at::kFloat ? 2e-5 : 1e-12);
    }
  }
}

TEST(FusedAttention, InPairsIsTheFormulasOfRoundedFactors) {
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    auto tensors = random_tensors(kv_heads, at::kFloat);
    for (auto* vectors : {&tensors.q, &tensors.k, &tensors.v}) {
      *vectors = vectors->to(at::kBFloat16).to(at::kFloat);  // so that scores are exact
    }
    const auto theirs = leaves(tensors);
    const auto expected = passes(by_formulas(three_models(), theirs), theirs);
    auto array = three_models();
    const auto results = [&](kernels::PairForm form) {
      array.pairs = form;
      const auto ours = leaves(tensors);
      return passes(fused_attention(array, ours), ours);
    };
    for (const bool tiles : {false, true}) {
      const auto found = results({tiles, 1, /*at_once=*/false});
      expect_near(found, expected, 5e-3);
      EXPECT_FALSE(found[0].equal(expected[0]));
      const auto at_once = results(kernels::pair_form(tiles));
      for (std::size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(at_once[i].equal(found[i])) << i;
    }
  }
}

TEST(FusedAttention, NewFormsDoNotDependOnTheNumberOfThreads) {
  const auto tensors = random_tensors(2, at::kFloat);
  const int before = at::get_num_threads();
  std::vector<std::vector<torch::Tensor>> results;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    const auto inputs = leaves(tensors);
    results.push_back(passes(fused_attention(three_models(), inputs), inputs));
  }
  at::set_num_threads(before);
  for (const auto& other : results) {
    for (std::size_t i = 0; i < other.size(); ++i) EXPECT_TRUE(other[i].equal(results[0][i])) << i;
  }
}

TEST(FusedAttention, LongSequencesAreTheWholeMap) {
  const auto x =
      at::arange(3 * 4096 * kWidth, at::kDouble).square().sin().view({3, 1, 1, -1, kWidth});
  const AttentionTensors tensors{x[0], x[1], x[2], at::full({1, 1, 1, 4096, 1}, 0.5, x.options())};
  const ArrayAttention array{{{.normalization = kernels::softmax()}},
                             dropout_masks(0.1, pass_of(1), 5, 1)};
  const auto theirs = leaves(tensors);
  const auto expected = passes(by_formulas(array, theirs), theirs);
  for (const auto type : {at::kDouble, at::kFloat}) {
    const auto ours = leaves(tensors, type);
    expect_near(passes(fused_attention(array, ours), ours), expected,
                type == at::kDouble ? 1e-9 : 2e-5);
  }
}

TEST(FusedAttention, ConstantsGetNoGradients) {
  const auto tensors = random_tensors(4, at::kFloat);
  auto inputs = leaves(tensors);
  inputs.distance_biases = tensors.distance_biases;
  const auto expected = leaves(tensors);
  passes(fused_attention(three_models(), inputs), inputs);
  passes(fused_attention(three_models(), expected), expected);
  EXPECT_FALSE(inputs.distance_biases.grad().defined());
  EXPECT_TRUE(inputs.sums.grad().equal(expected.sums.grad()));
  EXPECT_TRUE(inputs.q.grad().equal(expected.q.grad()));
}

}  // namespace
}  // namespace nas::nn
