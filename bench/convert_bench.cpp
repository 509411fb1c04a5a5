// The forward pass of a trained transformer, as conversions take it: SmolLM2-135M's sizes, weights at random.
// bench/rivals_torch.py has the same model in PyTorch.

#include <benchmark/benchmark.h>

#include "convert/assessment.hpp"
#include "convert/hybrid.hpp"
#include "genotype/architecture_name.hpp"
#include "ops/memory.hpp"

namespace nas {
namespace {

constexpr std::int64_t kLayers = 30;

const Conversion& conversion() {
  static const auto kConversion = [] {
    std::string name = "model{position_embedding=none,norm=rms}";
    for (std::int64_t i = 0; i < kLayers; ++i)
      name += "/attn{kv_heads=3,bias=none,dropout=0,position=rope,rope_base=100000}+swiglu";
    const Architecture frame{.layers = kLayers,
                             .width = 576,
                             .heads = 9,
                             .context = 8192,
                             .vocabulary = 49152,
                             .hidden = 1536,
                             .dropout = 0.0};
    return Conversion(parse_model(name, frame), {parse_block("full"), parse_block("window{64,4}")});
  }();
  return kConversion;
}

const Weights& weights() {
  static const auto kWeights = [] {
    nn::install_cpu_allocator();
    const at::NoGradGuard no_grad;
    nn::Transformer model(conversion().teacher(), NumericalMode::exact);
    model.initialise(1, 0);
    return weights_of(model);
  }();
  return kWeights;
}

/// @param state  tokens, the block of all layers, whether logits are made, whether in mode `fast`.
void forward(benchmark::State& state) {
  at::set_num_threads(1);
  HybridModel model(conversion(), weights(),
                    state.range(3) != 0 ? NumericalMode::fast : NumericalMode::exact);
  const auto tokens = at::arange(state.range(0), at::TensorOptions(at::kLong));
  const auto pass = [&] {
    auto stream = model.embedded(tokens);
    for (std::int64_t i = 0; i < kLayers; ++i)
      stream = model.behind(i, static_cast<std::size_t>(state.range(1)), stream);
    auto out = model.features(stream);
    if (state.range(2) != 0) out = model.logits(out);
    benchmark::DoNotOptimize(out);
  };
  pass();  // makes the layers
  const nn::MemoryScope memory;
  for (auto _ : state) pass();
  state.counters["MB beside the weights"] = static_cast<double>(memory.peak_bytes()) * 1e-6;
  const double per_token = 2.0 * 106.2e6 + (state.range(2) != 0 ? 2.0 * 576 * 49152 : 0.0);
  state.counters["GFLOP/s of products"] =
      benchmark::Counter(per_token * static_cast<double>(state.range(0)) * 1e-9,
                         benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(forward)
    ->Args({16, 0, 1, 0})
    ->Args({512, 0, 1, 0})
    ->Args({512, 1, 1, 0})
    ->Args({2048, 0, 0, 0})
    ->Args({2048, 0, 1, 0})
    ->Args({512, 0, 1, 1})
    ->Args({2048, 0, 1, 1})
    ->Unit(benchmark::kMillisecond);

/// What an evaluation of one document costs, from the layer on that is replaced, or of all such placements one after another.
/// @param state  tokens, the layer; kLayers: all.
void evaluation(benchmark::State& state) {
  at::set_num_threads(1);
  const auto tokens = at::arange(state.range(0), at::TensorOptions(at::kLong));
  Assessor assessor(
      conversion(), weights(), NumericalMode::exact,
      [&](std::int64_t) {
        return Samples{{tokens, tokens}};
      },
      0.0);
  const auto assess = [&](std::int64_t layer) {
    Placement placement(kLayers, 0);
    placement[static_cast<std::size_t>(layer)] = 1;
    benchmark::DoNotOptimize(assessor.assess(placement, 0));
  };
  const auto pass = [&] {
    if (state.range(1) < kLayers) return assess(state.range(1));
    for (std::int64_t i = 0; i < kLayers; ++i) assess(i);
  };
  pass();
  for (auto _ : state) pass();
}
BENCHMARK(evaluation)
    ->Args({16, 0})
    ->Args({512, 0})
    ->Args({512, 15})
    ->Args({512, kLayers})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nas
