// One attention layer, forward and backward: of every option in every numerical mode, and of windows
// by the length of the sequence.

#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include "genotype/architecture_name.hpp"
#include "genotype/component.hpp"
#include "genotype/costs.hpp"
#include "genotype/slots.hpp"
#include "nn/attention_layer.hpp"
#include "ops/memory.hpp"

namespace {

using namespace nas;

constexpr std::int64_t kTokens = 1024;        // of a batch
constexpr std::int64_t kWindowTokens = 4096;  // of a batch, where lengths are compared

/// A layer with what one pass needs; equal for all modes.
struct Layer {
  Layer(const Mechanism& mechanism, std::int64_t context, std::int64_t tokens, NumericalMode mode)
      : layer({mechanism}, shape(mechanism, context), Semantics::corrected,
              nn::ParameterScope(parameters, mode)) {
    nn::initialise(parameters, {{1, 0}});
    torch::manual_seed(1);
    x = torch::randn({1, tokens / context, context, 128}).requires_grad_(true);
    direction = torch::randn_like(x);
  }

  static AttentionShape shape(const Mechanism& mechanism, std::int64_t context) {
    Architecture architecture;  // of the paper's width and heads
    architecture.context = context;
    return attention_shape(architecture, mechanism);
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

struct Case {
  Mechanism mechanism;
  std::int64_t context = 128;
  std::int64_t tokens = kTokens;
  NumericalMode mode = NumericalMode::exact;
  bool backward = true;
};

void attention(benchmark::State& state, const Case& of) {
  at::set_num_threads(1);
  nn::install_cpu_allocator();
  Layer layer(of.mechanism, of.context, of.tokens, of.mode);
  const auto expected = Layer(of.mechanism, of.context, of.tokens, NumericalMode::reference).both();
  const double error = (layer.both() - expected).norm().item<double>();
  // bfloat16 moves scores across the edges of relu_norm and of the supports.
  if (error > (of.mode == NumericalMode::fast ? 0.3 : 1e-4) * expected.norm().item<double>()) {
    state.SkipWithError("the gradient is not the reference's");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(of.backward ? layer.both() : layer.forward());
  state.counters["tokens/s"] = benchmark::Counter(static_cast<double>(of.tokens),
                                                  benchmark::Counter::kIsIterationInvariantRate);
}

Mechanism named(const std::string& genes) {
  return parse_model(genes.empty() ? "attn" : "attn{" + genes + "}", {}).stack.front();
}

/// Vanilla with one gene set to each of its options in turn, as "gene=option".
std::vector<std::string> options() {
  std::vector<std::string> all{""};
  const auto vanilla = vanilla_mechanism(Semantics::corrected);
  for (const std::string gene : {"similarity", "normalization", "temperature", "gating", "qk_norm",
                                 "position", "pattern", "decay", "head_norm"}) {
    for (const auto& key : components().keys(gene))
      if (vanilla.word(gene) != key) all.push_back(gene + "=" + key);
  }
  for (const std::string genes : {"kv_heads=1", "conv=4", "bias=none"}) all.push_back(genes);
  return all;
}

void add(const std::string& name, const Case& of) {
  benchmark::RegisterBenchmark(name.c_str(), attention, of)->Unit(benchmark::kMillisecond);
}

}  // namespace

int main(int argc, char** argv) {
  for (const auto& genes : options()) {
    for (const auto mode : {NumericalMode::reference, NumericalMode::exact, NumericalMode::fast}) {
      for (const bool backward : {false, true}) {
        add(std::string(backward ? "both/" : "forward/") + std::string(to_string(mode)) + "/" +
                (genes.empty() ? "vanilla" : genes),
            {.mechanism = named(genes), .mode = mode, .backward = backward});
      }
    }
  }
  for (const std::int64_t context : {128, 256, 512, 1024, 2048}) {
    for (const std::string pattern : {"full", "window=32", "window=128"}) {
      for (const auto mode : {NumericalMode::reference, NumericalMode::exact}) {
        const auto genes = pattern == "full" ? "" : "pattern=window," + pattern;
        add("length/" + std::string(to_string(mode)) + "/" + pattern + "/" +
                std::to_string(context),
            {.mechanism = named(genes), .context = context, .tokens = kWindowTokens, .mode = mode});
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
