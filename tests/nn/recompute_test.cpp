// Layers that are computed again for gradients, against layers that keep what these need: the same bits in less memory.

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "array_step.hpp"
#include "evaluation/settings.hpp"
#include "genotype/architecture_name.hpp"
#include "ops/memory.hpp"
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

}  // namespace
}  // namespace nas
