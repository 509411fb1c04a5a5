// Recurrent heads of the paper's size, forward and backward, by the length of the sequence; and one more
// token of a model by the tokens before it.

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include "genotype/architecture_name.hpp"
#include "nn/decoder.hpp"
#include "nn/recurrence.hpp"
#include "nn/transformer.hpp"
#include "ops/memory.hpp"

namespace {

using namespace nas;

constexpr std::int64_t kTokens = 2048;  // of a batch
constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kWidth = 32;

struct Kind {
  std::string name;
  std::int64_t decays = 0;  // of a token
  bool erases = false;
};

/// Inputs in the layout of projections.
struct Heads {
  Heads(const Kind& kind, std::int64_t length) {
    torch::manual_seed(1);
    const auto draw = [length](std::int64_t width) {
      return torch::randn({1, kTokens / length, length, kHeads, width});
    };
    const auto unit = [&] {
      const auto x = draw(kWidth);
      return x / x.norm(2, -1, true);
    };
    leaves = {unit(), unit(), draw(kWidth)};
    if (kind.decays > 0) leaves.push_back(-0.1 * draw(kind.decays).abs());
    if (kind.erases) leaves.push_back(leaves[1] * draw(1).sigmoid());
    for (auto& leaf : leaves) leaf = leaf.detach().requires_grad_(true);
    direction = draw(kWidth).transpose(2, 3);
    by_channel = kind.decays > 1;
    decays = kind.decays > 0;
    erases = kind.erases;
  }

  /// @return the gradient w.r.t. keys.
  template <class Compute>
  torch::Tensor both(const Compute& compute) {
    for (auto& leaf : leaves) leaf.mutable_grad() = torch::Tensor();
    const auto in = [this](std::size_t i) { return leaves[i].transpose(2, 3); };
    compute({in(0), in(1), in(2), decays ? in(3) : torch::Tensor(),
             erases ? in(leaves.size() - 1) : torch::Tensor(), by_channel})
        .outputs.backward(direction);
    return leaves[1].grad();
  }

  std::vector<torch::Tensor> leaves;
  torch::Tensor direction;
  bool by_channel = false, decays = false, erases = false;
};

void prepare() {
  at::set_num_threads(1);
  nn::install_cpu_allocator();
}

void heads(benchmark::State& state, const Kind& kind, std::int64_t length) {
  prepare();
  Heads of(kind, length);
  const auto expected =
      of.both([](const nn::Recurrence& sequence) { return nn::by_chunks(sequence); }).clone();
  const auto kernel = [](const nn::Recurrence& sequence) { return nn::recurrence(sequence); };
  if ((of.both(kernel) - expected).norm().item<double>() > 1e-4 * expected.norm().item<double>()) {
    state.SkipWithError("the gradient is not that of operations");
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(of.both(kernel));
}

void decoding(benchmark::State& state, const std::string& mixer, std::int64_t before) {
  prepare();
  const at::NoGradGuard no_grad;
  Architecture frame;
  frame.context = 4096;
  nn::Transformer model(canonical(parse_model("2*" + mixer, frame)));
  model.initialise(1, 0);
  nn::Decoder decoder(model, frame.context);
  const auto token = torch::zeros({1}, torch::kLong);
  for (std::int64_t t = 0; t < before; ++t) decoder.step(token);
  state.counters["bytes"] = static_cast<double>(decoder.state_bytes());
  for (auto _ : state) benchmark::DoNotOptimize(decoder.step(token));
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Kind> kinds{{"linear", 0, false},  {"ssd", 1, false}, {"gla", kWidth, false},
                                {"deltanet", 0, true}, {"gdn", 1, true},  {"kda", kWidth, true}};
  for (const auto& kind : kinds) {
    for (const std::int64_t length : {128, 256, 512, 1024, 2048}) {
      benchmark::RegisterBenchmark(("heads/" + kind.name + "/" + std::to_string(length)).c_str(),
                                   heads, kind, length)
          ->Unit(benchmark::kMillisecond);
    }
  }
  for (const std::string mixer :
       {"attn", "linear", "performer", "retnet", "ssd", "gla", "deltanet", "gdn", "gdn2", "kda",
        "kda{decay_form=bounded}", "pair(attn|ssd)", "attn{maps=difference}", "attn{kv_rank=32}",
        "attn{position=cope}", "attn{position=path}", "attn{decay=channel}",
        "attn{pattern=indexed}"}) {
    for (const std::int64_t before : {128, 1024, 2048}) {
      constexpr std::int64_t kSteps = 200;
      benchmark::RegisterBenchmark(("decode/" + mixer + "/" + std::to_string(before)).c_str(),
                                   decoding, mixer, before)
          ->Unit(benchmark::kMicrosecond)
          ->Iterations(kSteps);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
