// Layers, and cheap operations, that are computed again for gradients, against those that keep what these need: the same bits in
// less memory.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "array_step.hpp"
#include "evaluation/settings.hpp"
#include "genotype/architecture_name.hpp"
#include "nn/transformer.hpp"
#include "ops/cpu_products.hpp"
#include "ops/embedding.hpp"
#include "ops/gate.hpp"
#include "ops/loss.hpp"
#include "ops/memory.hpp"
#include "ops/norm.hpp"
#include "small_corpus.hpp"
#include "training/trainer.hpp"

namespace nas {
namespace {

constexpr std::int64_t kTokens = 20;

/// With dropout everywhere.
Architecture model_of(const std::string& name) {
  const Architecture frame{.width = 24,
                           .heads = 4,
                           .context = kTokens,
                           .vocabulary = 29,
                           .feed_forward = 2,
                           .dropout = 0.2};
  return canonical(parse_model(name, frame));
}

void expect_same_bits(const std::vector<Architecture>& models) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < models.size(); ++i) places.push_back(i);
  for (const auto mode : {NumericalMode::reference, NumericalMode::exact, NumericalMode::fast}) {
    SCOPED_TRACE(static_cast<int>(mode));
    const auto step = [&](bool again) {
      return nn::test::step_of(models, places, at::kFloat, at::kCPU, nn::test::From::spread, mode,
                               again);
    };
    const auto kept = step(false), again = step(true);
    EXPECT_TRUE(again.losses.equal(kept.losses));
    for (const auto i : places) {
      ASSERT_EQ(again.gradients[i].size(), kept.gradients[i].size());
      for (const auto& [name, gradient] : kept.gradients[i]) {
        EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << i << " " << name;
        EXPECT_TRUE(again.gradients[i].at(name).equal(gradient))
            << i << " " << name << " "
            << (again.gradients[i].at(name) - gradient).abs().max().item<double>();
      }
    }
  }
}

TEST(RecomputedLayers, HaveTheSameGradientsInArraysOfThePapersOptions) {
  expect_same_bits(nn::test::various_models());
}

TEST(RecomputedLayers, HaveTheSameGradientsWhateverPassesBetweenThem) {
  const std::string frame = "model{position_embedding=none,norm=rms,bias=none}/";
  for (const std::string name :
       {"attn{value_embedding=1}+gelu/conv+swiglu/attn{kv_heads=2,value_embedding=1}+none",
        "attn{kv_heads=2,position=rope}+none/attn{kv_heads=2,position=rope,keys=shared}+gelu/"
        "conv+none/attn{kv_heads=2,position=rope,keys=shared}+gelu",
        "attn{kv_heads=2}+gelu/attn{kv_heads=2,value_exclusion=1}+none/"
        "attn{kv_heads=2,keys=shared}+gelu",
        "attn{smear=1,gating=output_gate,temperature=learned}+gelu/"
        "recurrent{decay=scalar,conv=4}+swiglu",
        "recurrent{update=delta,decay=channel}+none/"
        "attn{pattern=window,window=4,decay=scalar}+gelu",
        "attn{qk_norm=rms,head_norm=rms,position=alibi}+swiglu/attn{kv_rank=8}+gelu"}) {
    SCOPED_TRACE(name);
    expect_same_bits({model_of(frame + name)});
  }
}

TEST(RecomputedLayers, HaveTheSameGradientsInEveryFormOfABlock) {
  for (const std::string genes : {"block=parallel", "block=parallel_norms,norm=rms",
                                  "norm_place=post", "norm_place=sandwich,tied=0"}) {
    SCOPED_TRACE(genes);
    expect_same_bits({model_of("model{" + genes + "}/2*attn+gelu")});
  }
}

TEST(RecomputedLayers, HaveTheSameGradientsBesideModelsOfOtherMixers) {
  expect_same_bits({model_of("attn{value_embedding=1}/conv/attn{value_embedding=1}"),
                    model_of("conv/attn/attn{value_embedding=1}"), model_of("conv/attn/conv")});
}

TEST(RecomputedLayers, ShowAWatcherEachMixerOnce) {
  nn::TransformerArray models({model_of("2*attn")}, NumericalMode::exact);
  models.initialise({{1, 0}});
  models.recompute_layers(true);
  int seen = 0;
  nn::Pass pass{.training = true, .seeds = {3}};
  pass.mixed = [&](const auto&, const auto&, const auto&) { ++seen; };
  const auto tokens = at::zeros({1, 2, kTokens}, at::TensorOptions(at::kLong));
  models.loss(tokens, tokens, pass).sum().backward();
  EXPECT_EQ(seen, 2);
}

TrainingJob job_of(const std::string& recompute, std::int64_t micro) {
  Parameters parameters(training_settings());
  parameters.set("steps", std::int64_t{10});
  parameters.set("batch_size", std::int64_t{16});
  parameters.set("micro_batch", micro);
  parameters.set("evaluation_batch_size", std::int64_t{1});
  parameters.set("recompute", recompute);
  return {.architecture = model_of("6*attn+gelu"),
          .settings = TrainingSettings(parameters),
          .run_seed = 5};
}

TEST(RecomputedLayers, TrainTheSameModelInLessMemory) {
  nn::install_cpu_allocator();
  const auto corpus = test::counting_corpus(29, kTokens, 40);
  for (const std::int64_t micro : {0, 4}) {
    const auto kept = train(std::vector{job_of("none", micro)}, corpus, {}).front();
    const auto again = train(std::vector{job_of("layers", micro)}, corpus, {}).front();
    ASSERT_EQ(again.status, Status::ok) << again.reason;
    EXPECT_EQ(again.curve.back().train_nll, kept.curve.back().train_nll);
    EXPECT_EQ(again.curve.back().valid.nll, kept.curve.back().valid.nll);
    EXPECT_LT(again.peak_bytes, (micro == 0 ? 0.5 : 0.8) * static_cast<double>(kept.peak_bytes));
  }
}

TEST(RecomputedLayers, AreWhatTooLittleMemorySuggests) {
  TrainingContext context;
  context.memory_limit = 100'000;
  const auto reason_of = [&](const std::string& recompute) {
    const auto corpus = test::counting_corpus(29, kTokens, 40);
    return train(std::vector{job_of(recompute, 1)}, corpus, context).front().reason;
  };
  EXPECT_NE(reason_of("none").find("; training.recompute = layers keeps less of each layer"),
            std::string::npos);
  EXPECT_EQ(reason_of("layers").find("training."), std::string::npos);
}

TEST(RecomputedLayers, AreTrainedApartFromThoseThatAreNot) {
  EXPECT_TRUE(fit_together(job_of("layers", 0), job_of("layers", 0)));
  EXPECT_FALSE(fit_together(job_of("layers", 0), job_of("none", 0)));
}

using Tensors = std::vector<torch::Tensor>;

torch::Tensor drawn(at::IntArrayRef sizes, std::uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed)).requires_grad_();
}

/// Of two ways, what they gave; each leaves its gradients.
struct Ways {
  std::array<Tensors, 2> gradients;
  std::array<std::int64_t, 2> bytes{};

  void keep(bool way, const Tensors& leaves, std::int64_t of_way) {
    bytes.at(way) = of_way;
    for (const auto& leaf : leaves) {
      if (leaf.grad().defined()) gradients.at(way).push_back(leaf.grad());
      leaf.mutable_grad() = torch::Tensor();
    }
  }
  void expect_same() const {
    ASSERT_EQ(gradients[0].size(), gradients[1].size());
    for (std::size_t i = 0; i < gradients[0].size(); ++i)
      EXPECT_TRUE(gradients[0][i].equal(gradients[1][i])) << i;
  }
};

TEST(ResultsMadeAgain, HaveTheGradientsOfKeptOnes) {
  const auto masks = nn::dropout_masks(0.3, {.training = true, .seeds = {5, 6}}, 2, 2);
  kernels::GatedSum sum;
  for (std::size_t i = 0; i < 2; ++i) sum.factors.at(i).constant = 0.5F;
  const auto x = drawn({2, 7, 1024}, 1), z = drawn({2, 7, 1024}, 2), g = drawn({2, 1024}, 3),
             b = drawn({2, 1024}, 4), one = drawn({2, 9, 1024}, 5), other = drawn({2, 9, 1024}, 6);
  const auto own = nn::use_cpu_products(NumericalMode::fast, {nn::CpuProducts::By::pairs});
  for (const auto mode : {NumericalMode::exact, NumericalMode::fast}) {
    const std::vector<std::function<torch::Tensor()>> all{
        [&] { return nn::layer_norm(x, g, b, 1e-5, mode); },
        [&] { return nn::rms_norm(x, g, 1e-5, mode); }, [&] { return nn::dropped_gelu(x, masks); },
        [&] { return nn::dropped_swiglu(x, z, masks); },
        [&] {
          return nn::gated_sum({{sum, sum}}, {nn::rms_norm(x, g, 1e-5, mode), z}, {});
        }};
    for (const auto& cheap : all) {
      Ways ways;
      for (const bool kept : {false, true}) {
        const nn::MemoryScope memory;
        auto y = cheap();
        if (kept) y = y.view(y.sizes());  // which nobody can make again
        const auto product = nn::linear(y, one, {}, mode) * nn::linear(y, other, {}, mode);
        y.reset();
        const auto bytes = memory.current_bytes();
        product.sum().backward();
        ways.keep(kept, {x, z, g, b, one, other}, bytes);
      }
      ways.expect_same();
      EXPECT_EQ(ways.bytes[1] - ways.bytes[0], 4 * x.numel());
    }
  }
  nn::use_cpu_products(NumericalMode::fast, own);
}

TEST(KeptStreams, AreThoseThatNothingCheapMakesAgain) {
  const auto kept = [](int layers, const std::string& layer) {
    const Architecture frame{
        .width = 256, .heads = 4, .context = 8, .vocabulary = 10, .dropout = 0.1};
    const auto name = "model{bias=none}/" + std::to_string(layers) + "*" + layer;
    nn::TransformerArray models({canonical(parse_model(name, frame))}, NumericalMode::exact);
    models.initialise({{1, 0}});
    const nn::MemoryScope memory;
    const auto hidden = models.hidden(at::zeros({1, 2, 8}, at::TensorOptions(at::kLong)),
                                      {.training = true, .seeds = {3}});
    return static_cast<double>(memory.current_bytes()) / (4 * 2 * 8 * 256);
  };
  // Two of the stream, q, k, v, what attention gives, four of hidden values; beside a small map of attention.
  for (const auto& [layer, streams] : std::vector<std::pair<std::string, double>>{
           {"attn+gelu", 10.5}, {"attn+swiglu{ratio=4}", 14.5}, {"attn{kv_heads=1}+none", 3.9}})
    EXPECT_LT((kept(5, layer) - kept(1, layer)) / 4, streams) << layer;
}

TEST(TiedTables, HaveTheGradientOfTheSumOfTwoInPlace) {
  const auto table = drawn({2, 500, 16}, 1), places = drawn({2, 9, 16}, 2);
  const auto tokens = at::randint(5, {2, 3, 8}, at::TensorOptions(at::kLong));
  for (const bool twice : {true, false}) {
    Ways ways;
    for (const bool tied : {false, true}) {
      auto [y, output] = nn::embed_tied(tokens, table, places, NumericalMode::exact);
      const auto losses = nn::linear_cross_entropy(y, tied ? output : table, tokens,
                                                   NumericalMode::exact, torch::Tensor());
      const nn::MemoryScope memory;
      if (twice) losses.sum().backward({}, /*retain_graph=*/true);
      losses.sum().backward();
      ways.keep(tied, {table, places}, memory.peak_bytes());
    }
    ways.expect_same();
    EXPECT_GT(ways.bytes[0] - ways.bytes[1], twice ? 0 : 6 * table.numel());  // of two tables: 8
  }
}

}  // namespace
}  // namespace nas
