// What a training run is said to take, against what it takes.

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "core/error.hpp"
#include "core/optimizers.hpp"
#include "core/process_memory.hpp"
#include "evaluation/settings.hpp"
#include "genotype/architecture_name.hpp"
#include "ops/cpu_products.hpp"
#include "ops/memory.hpp"
#include "small_corpus.hpp"
#include "training/memory_need.hpp"

namespace nas {
namespace {

using ::testing::HasSubstr;

struct Sizes {
  std::int64_t layers = 4, width = 64, context = 64, vocabulary = 300, batch = 8, micro = 0,
               scored = 1;
  std::string recompute = "none", optimizer = "adamw";
};

TrainingJob job_of(const std::string& model, const Sizes& sizes) {
  Parameters parameters(training_settings());
  parameters.set("steps", std::int64_t{2});
  parameters.set("batch_size", sizes.batch);
  parameters.set("micro_batch", sizes.micro);
  parameters.set("evaluation_batch_size", sizes.scored);
  parameters.set("recompute", sizes.recompute);
  parameters.set("optimizer", sizes.optimizer);
  const Architecture frame{.layers = sizes.layers,
                           .width = sizes.width,
                           .heads = 4,
                           .context = sizes.context,
                           .vocabulary = sizes.vocabulary,
                           .dropout = 0.1};
  return {.architecture = canonical(parse_model(model, frame)),
          .settings = TrainingSettings(parameters),
          .run_seed = 5};
}

/// @return the moment of the most memory.
std::string expect_near(const std::string& model, const Sizes& sizes,
                        NumericalMode mode = NumericalMode::exact, double least = 0.9) {
  TrainingContext context;
  context.numerical_mode = mode;
  const auto job = job_of(model, sizes);
  const auto need = memory_need(job.architecture, job.settings, context);
  const auto corpus = test::counting_corpus(sizes.vocabulary, sizes.context, 64);
  const auto taken = train(std::vector{job}, corpus, context).front();
  EXPECT_EQ(taken.status, Status::ok) << taken.reason;
  EXPECT_THAT(static_cast<double>(need.total()) / static_cast<double>(taken.peak_bytes),
              ::testing::AllOf(::testing::Ge(least), ::testing::Le(1.1)))
      << model << ": " << taken.peak_bytes << " bytes, said " << need.total() << ": "
      << need.text();
  return need.when;
}

constexpr const char* kVanilla = "dot|softmax|none|fixed|bias|0.1";

TEST(TrainingMemory, IsNearWhatIsTakenWhereverTheMostIs) {
  nn::install_cpu_allocator();
  for (const auto by : {nn::CpuProducts::By::tiles, nn::CpuProducts::By::float32}) {
    nn::use_cpu_products(NumericalMode::exact, {by});  // the last for what follows
    EXPECT_EQ(expect_near(kVanilla, {.context = 16, .vocabulary = 20000, .batch = 1}), "the loss");
  }
  EXPECT_EQ(expect_near(kVanilla, {.layers = 8, .batch = 16}), "gradients of layer 7");
  EXPECT_THAT(expect_near(kVanilla, {.layers = 8, .batch = 16, .micro = 4}), HasSubstr("layer"));
  EXPECT_THAT(expect_near(kVanilla, {.layers = 8, .batch = 16, .recompute = "layers"}),
              HasSubstr("layer"));
  EXPECT_EQ(expect_near(kVanilla, {.layers = 8, .width = 128, .context = 8, .batch = 1},
                        NumericalMode::reference),
            "the end of a step");
  EXPECT_EQ(expect_near(kVanilla, {.batch = 2, .scored = 64}), "validation");
  expect_near(kVanilla, {.layers = 2, .width = 256, .batch = 32}, NumericalMode::exact, 1.0);
}

TEST(TrainingMemory, IsNearWhatLayersOfAnyKindTake) {
  const std::string frame = "model{position_embedding=none,norm=rms,bias=none}/";
  for (const std::string name :
       {"3*attn{value_embedding=1,kv_heads=2}+swiglu/conv{conv=4}+none",
        "attn{kv_heads=2}+gelu/3*attn{kv_heads=2,keys=shared}+gelu",
        "2*recurrent{update=delta,decay=channel}+swiglu/2*recurrent{decay=scalar,conv=4}+gelu",
        "2*attn{normalization=entmax15,similarity=cosine}+gelu/attn{gating=output_gate}+gelu"}) {
    for (const std::string recompute : {"none", "layers"}) {
      expect_near(frame + name, {.batch = 12, .recompute = recompute});
    }
  }
}

TEST(TrainingMemory, IsNearWhatOtherModesAndOptimizersTake) {
  for (const auto mode : {NumericalMode::reference, NumericalMode::fast})
    expect_near(kVanilla, {.batch = 12}, mode);
  for (const auto& optimizer : optimizers().keys()) {
    const Sizes sizes{.batch = 12, .optimizer = optimizer};
    expect_near(kVanilla, sizes);
    const auto job = job_of(kVanilla, sizes);
    EXPECT_LE(least_bytes(job.architecture, job.settings, sizes.batch),
              memory_need(job.architecture, job.settings, {}).total());
  }
}

TEST(TrainingMemory, IsSaidToFitWhereItDoes) {
  const auto job = job_of(kVanilla, {.layers = 8, .batch = 16, .scored = 64});
  const auto most = memory_need(job.architecture, job.settings, {}).total();
  const auto text_of = [&](std::int64_t bytes) {
    return what_fits(job.architecture, job.settings, {}, bytes);
  };
  EXPECT_THAT(text_of(most / 3),
              HasSubstr("training.micro_batch = 2, training.evaluation_batch_size = 32 takes "));
  expect_near(kVanilla, {.layers = 8, .batch = 16, .micro = 2, .scored = 32});
  const auto lone = job_of(kVanilla, {.layers = 16, .context = 256, .batch = 1});
  const auto all = memory_need(lone.architecture, lone.settings, {}).total();
  EXPECT_THAT(what_fits(lone.architecture, lone.settings, {}, all * 2 / 3),
              ::testing::StartsWith("training.recompute = layers takes "));
  EXPECT_EQ(text_of(1000), "no settings of training make it fit");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
TEST(TrainingMemory, IsRefusedWhereALimitLeavesHardlyMore) {
  const auto job = job_of(kVanilla, {.layers = 8, .context = 256, .batch = 32});
  const auto fit = [&] { return require_fit(job.architecture, job.settings, {}); };
  const auto need = static_cast<double>(fit().total());
  for (const double share : {1.05, 1.3}) {
    const auto bytes = static_cast<double>(mapped_memory()) + share * need;
    const rlimit limit{static_cast<rlim_t>(bytes), RLIM_INFINITY},
        none{RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    if (share < 1.125) {
      EXPECT_THROW(fit(), InputError);
    } else {
      EXPECT_NO_THROW(fit());
    }
    setrlimit(RLIMIT_AS, &none);
  }
}
#endif

}  // namespace
}  // namespace nas
