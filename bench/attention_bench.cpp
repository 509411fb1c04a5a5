// One attention layer, forward and backward, of every option and in every numerical mode.

#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include "genotype/component.hpp"
#include "genotype/mechanism.hpp"
#include "nn/attention.hpp"
#include "ops/memory.hpp"

namespace {

using namespace nas;

constexpr std::int64_t kBatch = 8;
const AttentionShape kShape{128, 4, 128};

/// A layer with what one pass needs; equal for all modes.
struct Layer {
  Layer(const Mechanism& mechanism, NumericalMode mode)
      : layer({mechanism}, kShape, Semantics::corrected, nn::ParameterScope(parameters, mode)) {
    nn::initialise(parameters, {{1, 0}});
    torch::manual_seed(1);
    x = torch::randn({1, kBatch, kShape.context, kShape.width}).requires_grad_(true);
    direction = torch::randn_like(x);
  }

  torch::Tensor forward() { return layer.forward(x, x, {.training = true, .seeds = {1}}, 0); }

  /// @return the gradient w.r.t. x.
  torch::Tensor both() {
    x.mutable_grad() = torch::Tensor();
    for (auto& parameter : parameters) parameter.tensor.mutable_grad() = torch::Tensor();
    forward().backward(direction);
    return x.grad();
  }

  std::vector<nn::Parameter> parameters;
  nn::AttentionLayer layer;
  torch::Tensor x, direction;
};

void attention(benchmark::State& state, const Mechanism& mechanism, NumericalMode mode,
               bool backward) {
  at::set_num_threads(1);
  nn::install_cpu_allocator();
  Layer layer(mechanism, mode);
  const auto expected = Layer(mechanism, NumericalMode::reference).both();
  const double error = (layer.both() - expected).norm().item<double>();
  // bfloat16 moves scores across the edges of relu_norm and of the supports.
  if (error > (mode == NumericalMode::fast ? 0.3 : 1e-4) * expected.norm().item<double>()) {
    state.SkipWithError("the gradient is not the reference's");
    return;
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(backward ? layer.both() : layer.forward());
  }
  state.counters["tokens/s"] = benchmark::Counter(static_cast<double>(kBatch * kShape.context),
                                                  benchmark::Counter::kIsIterationInvariantRate);
}

/// Vanilla with one gene of the kernel set to each of its options in turn.
std::vector<Mechanism> mechanisms() {
  std::vector<Mechanism> all{vanilla_mechanism(Semantics::corrected)};
  for (const auto* gene : {"similarity", "normalization", "temperature"}) {
    for (const auto& key : components().keys(gene)) {
      auto mechanism = vanilla_mechanism(Semantics::corrected);
      if (mechanism.component(gene) == key) continue;
      mechanism.component(gene) = key;
      all.push_back(mechanism);
    }
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  for (const auto& mechanism : mechanisms()) {
    for (const auto mode : {NumericalMode::reference, NumericalMode::exact, NumericalMode::fast}) {
      for (const bool backward : {false, true}) {
        const auto name = std::string(backward ? "both/" : "forward/") +
                          std::string(to_string(mode)) + "/" + mechanism.similarity + "|" +
                          mechanism.normalization + "|" + mechanism.temperature;
        benchmark::RegisterBenchmark(name.c_str(), attention, mechanism, mode, backward)
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
