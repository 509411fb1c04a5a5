// The forward pass of a trained transformer, as conversions take it: SmolLM2-135M's sizes, weights at random.
// bench/rivals_torch.py has the same model in PyTorch.

#include <algorithm>
#include <ctime>

#include <benchmark/benchmark.h>

#include "convert/assessment.hpp"
#include "convert/hybrid.hpp"
#include "convert/stage_one.hpp"
#include "genotype/architecture_name.hpp"
#include "ops/memory.hpp"

namespace nas {
namespace {

constexpr std::int64_t kLayers = 30, kLeastVocabulary = 512;

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

/// A step of stage 1 and its parts. The small teacher has 8 layers of width 64, four blocks in each.
struct Stage1 {
  explicit Stage1(bool small) : of(small ? small_conversion() : large()) {
    const at::NoGradGuard no_grad;
    nn::Transformer model(of.teacher(), NumericalMode::exact);
    model.initialise(1, 0);
    teacher = weights_of(model);
  }
  static Conversion large() {
    return {conversion().teacher(), {parse_block("full"), parse_block("gdn")}};
  }
  static Conversion small_conversion() {
    Architecture frame = conversion().teacher();
    frame.width = 64, frame.heads = 4, frame.context = 512, frame.vocabulary = kLeastVocabulary;
    frame.hidden = 192, frame.layers = 8;
    std::string name = "model{position_embedding=none,norm=rms}";
    for (int i = 0; i < 8; ++i) name += "/attn{bias=none,dropout=0,position=rope}+swiglu";
    std::vector<LayerBlock> blocks{parse_block("full")};
    for (const auto* text : {"gdn", "gdn{0,1}", "gdn{4,0}", "gdn{2,1}"})
      blocks.push_back(parse_block(text));
    return {parse_model(name, frame), std::move(blocks)};
  }

  Conversion of;
  Weights teacher;
};

constexpr auto kMode = NumericalMode::exact;

/// A step, as the processor's time of so many less that of one. @param state  whether of the small teacher, tokens.
void stage1(benchmark::State& state) {
  at::set_num_threads(1);
  nn::install_cpu_allocator();
  const Stage1 one(state.range(0) != 0);
  const auto tokens =
      at::arange(state.range(1), at::TensorOptions(at::kLong)).unsqueeze(0) % kLeastVocabulary;
  const nn::MemoryScope memory;
  const auto seconds = [&](std::int64_t steps) {
    const auto begin = std::clock();
    LearnedBlocks learned(one.of, one.teacher, kMode,
                          {.steps = steps, .batch = [&](auto, auto) { return tokens; }}, {});
    benchmark::DoNotOptimize(learned.at(0, 1, 0));
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  const std::int64_t more = state.range(0) != 0 ? 20 : 2;
  for (auto _ : state)
    state.SetIterationTime((seconds(1 + more) - seconds(1)) / static_cast<double>(more));
  state.counters["MB beside the teacher"] = static_cast<double>(memory.peak_bytes()) * 1e-6;
}
BENCHMARK(stage1)->Args({0, 512})->Args({1, 512})->UseManualTime()->Unit(benchmark::kMillisecond);

/// What a step consists of.
/// @param state  whether of the small teacher, tokens, and the part: 0 the teacher's pass; 1 passes and steps of the blocks in
/// arrays of as many as stage 1 makes; 2 those of one array of 32.
void stage1_parts(benchmark::State& state) {
  at::set_num_threads(1);
  nn::install_cpu_allocator();
  const Stage1 one(state.range(0) != 0);
  const auto layers = one.of.layers();
  const auto blocks = layers * (std::ssize(one.of.blocks()) - 1);
  if (state.range(2) == 0) {
    const at::NoGradGuard no_grad;
    HybridModel model(one.of, one.teacher, kMode);
    const auto tokens = at::arange(state.range(1), at::TensorOptions(at::kLong));
    for (auto _ : state) {
      auto stream = model.embedded(tokens % kLeastVocabulary);
      for (std::int64_t i = 0; i < layers; ++i) stream = model.behind(i, 0, stream);
      benchmark::DoNotOptimize(stream);
    }
    return;
  }
  const at::AutoGradMode with_gradients(true);
  const auto x = at::randn({1, 1, state.range(1), one.of.teacher().width});
  const bool one_array = state.range(2) == 2;
  const std::int64_t most = one_array ? 32 : state.range(0) != 0 ? layers : 13;
  std::vector<BlockArray> arrays;
  for (std::int64_t i = 0; i < (one_array ? 32 : blocks); i += most) {
    std::vector<std::int64_t> own;
    for (auto j = i; j < std::min(i + most, one_array ? 32 : blocks); ++j)
      own.push_back(j % layers);
    arrays.emplace_back(one.of, one.teacher,
                        one_array ? 1 : static_cast<std::size_t>(1 + i / layers), own, kMode);
  }
  std::int64_t step = 0;
  for (auto _ : state) {
    ++step;
    for (auto& array : arrays) {
      for (const auto layer : array.layers()) (void)array.note(layer, x, x, x);
      array.differentiate();
      array.step(step, 1e-3);
    }
  }
}
BENCHMARK(stage1_parts)
    ->Args({0, 512, 0})
    ->Args({0, 512, 1})
    ->Args({1, 512, 0})
    ->Args({1, 512, 1})
    ->Args({1, 512, 2})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace nas
