// The parts of a training step outside attention, and whole steps, in every numerical mode.

#include <cmath>
#include <string>

#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include "genotype/architecture.hpp"
#include "genotype/mechanism_name.hpp"
#include "nn/transformer.hpp"
#include "ops/dropout.hpp"
#include "ops/loss.hpp"
#include "ops/memory.hpp"
#include "ops/product.hpp"
#include "training/optimizer.hpp"

namespace {

using namespace nas;

constexpr std::int64_t kRows = 1024;
constexpr std::int64_t kWidth = 128;
constexpr std::int64_t kVocabulary = 10000;

void prepare() {
  at::set_num_threads(1);
  nn::install_cpu_allocator();
  torch::manual_seed(1);
}

bool close(const torch::Tensor& given, const torch::Tensor& expected, double tolerance) {
  return (given - expected).norm().item<double>() <= tolerance * expected.norm().item<double>();
}

double tolerance(NumericalMode mode) { return mode == NumericalMode::fast ? 0.02 : 1e-5; }

/// The output layer with its loss, forward and backward.
void loss(benchmark::State& state, NumericalMode mode) {
  prepare();
  auto features = torch::randn({1, kRows, kWidth}).requires_grad_(true);
  auto embedding = (0.02 * torch::randn({1, kVocabulary, kWidth})).requires_grad_(true);
  const auto targets = torch::randint(kVocabulary, {1, kRows}, torch::kLong);
  const auto gradient = [&](NumericalMode way) {
    embedding.mutable_grad() = torch::Tensor();
    features.mutable_grad() = torch::Tensor();
    nn::linear_cross_entropy(features, embedding, targets, way).backward();
    return embedding.grad();
  };
  if (!close(gradient(mode), gradient(NumericalMode::reference).clone(), tolerance(mode))) {
    state.SkipWithError("the gradient is not the reference's");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(gradient(mode));
  state.counters["FLOP/s"] = benchmark::Counter(6.0 * kRows * kWidth * kVocabulary,
                                                benchmark::Counter::kIsIterationInvariantRate);
}

/// One linear layer, forward and backward.
void linear(benchmark::State& state, NumericalMode mode) {
  prepare();
  auto x = torch::randn({1, kRows, kWidth}).requires_grad_(true);
  auto weight = torch::randn({1, 4 * kWidth, kWidth}).requires_grad_(true);
  auto bias = torch::randn({1, 4 * kWidth}).requires_grad_(true);
  const auto direction = torch::randn({1, kRows, 4 * kWidth});
  const auto gradient = [&](NumericalMode way) {
    for (auto* tensor : {&x, &weight, &bias}) tensor->mutable_grad() = torch::Tensor();
    nn::linear(x, weight, nn::Biases::of_all(bias), way).backward(direction);
    return weight.grad();
  };
  if (!close(gradient(mode), gradient(NumericalMode::reference).clone(), tolerance(mode))) {
    state.SkipWithError("the gradient is not the reference's");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(gradient(mode));
  state.counters["FLOP/s"] = benchmark::Counter(6.0 * kRows * kWidth * 4 * kWidth,
                                                benchmark::Counter::kIsIterationInvariantRate);
}

/// Dropout by LibTorch (a stored mask from a serial generator) or by a counter.
void dropout(benchmark::State& state, bool counter) {
  prepare();
  const auto x = torch::ones({1, kRows, 4 * kWidth});
  const auto run = [&](std::uint64_t seed) {
    return counter
               ? nn::dropout(x, nn::dropout_masks(0.1, {.training = true, .seeds = {seed}}, 0, 1))
               : torch::dropout(x, 0.1, true);
  };
  const auto kept = run(0).count_nonzero().item<double>() / static_cast<double>(x.numel());
  if (std::abs(kept - 0.9) > 0.005) {
    state.SkipWithError("not nine tenths are kept");
    return;
  }
  std::uint64_t seed = 0;
  for (auto _ : state) benchmark::DoNotOptimize(run(++seed));
  state.SetItemsProcessed(state.iterations() * x.numel());
}

/// GELU and dropout, forward and backward, as two operations or as one.
void gelu(benchmark::State& state, bool fused) {
  prepare();
  auto x = torch::randn({1, kRows, 4 * kWidth}).requires_grad_(true);
  const auto direction = torch::randn_like(x);
  const auto masks = nn::dropout_masks(0.1, {.training = true, .seeds = {1}}, 0, 1);
  const auto gradient = [&](bool one) {
    x.mutable_grad() = torch::Tensor();
    (one ? nn::dropped_gelu(x, masks) : nn::dropout(torch::gelu(x), masks)).backward(direction);
    return x.grad();
  };
  if (!close(gradient(true), gradient(false).clone(), 1e-5)) {
    state.SkipWithError("the gradients differ");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(gradient(fused));
  state.SetItemsProcessed(state.iterations() * x.numel());
}

/// A whole step of a small batch: model, loss, gradients, clipping, AdamW.
void step(benchmark::State& state, const std::string& mechanism, NumericalMode mode) {
  prepare();
  Architecture architecture{.stack = {parse_mechanism(mechanism, Semantics::corrected)},
                            .semantics = Semantics::corrected,
                            .vocabulary = kVocabulary};
  const auto tokens = torch::randint(kVocabulary, {8, architecture.context}, torch::kLong);
  const auto targets = torch::randint(kVocabulary, {8, architecture.context}, torch::kLong);
  const auto loss_of = [&](nn::Transformer& model) {
    return model.loss(tokens, targets, {.training = true, .seeds = {1}});
  };
  nn::Transformer model(architecture, mode);
  nn::Transformer reference(architecture);
  model.initialise(1, 0);
  reference.initialise(1, 0);
  const double error = std::abs(loss_of(model).item<double>() - loss_of(reference).item<double>());
  if (error > (mode == NumericalMode::fast ? 1e-2 : 1e-4)) {
    state.SkipWithError("the loss is not the reference's");
    return;
  }
  const auto& array = model.array();
  Optimizer optimizer(array.parameters(), 1,
                      [&array](const nn::Parameter& p) { return array.decays(p); });
  const std::vector<ModelStep> first(1);
  for (auto _ : state) {
    loss_of(model).backward();
    optimizer.step(first);
  }
  state.counters["tokens/s"] = benchmark::Counter(static_cast<double>(tokens.numel()),
                                                  benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

int main(int argc, char** argv) {
  const auto add = [](const std::string& name, auto... arguments) {
    benchmark::RegisterBenchmark(name.c_str(), arguments...)->Unit(benchmark::kMillisecond);
  };
  for (const auto mode : {NumericalMode::reference, NumericalMode::exact, NumericalMode::fast}) {
    const std::string way(to_string(mode));
    add("loss/" + way, loss, mode);
    add("linear/" + way, linear, mode);
    for (const auto* mechanism :
         {"dot|softmax|none|fixed|bias|0.1", "dot|sparsemax|output_gate|learned|bias|0.1",
          "additive|softmax|none|fixed|bias|0.1",
          "cosine|sigmoid_norm|highway|per_query|bias|0.1"}) {
      add("step/" + way + "/" + mechanism, step, std::string(mechanism), mode);
    }
  }
  add("dropout/libtorch", dropout, false);
  add("dropout/counter", dropout, true);
  add("gelu/separate", gelu, false);
  add("gelu/fused", gelu, true);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
