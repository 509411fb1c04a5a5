// That associative recall of four pairs in 32 tokens can be learnt, by a model of width 32: generator, mask, model
// and training loop together. A minute on one core.

#include <iostream>

#include <gtest/gtest.h>

#include "core/parameters.hpp"
#include "data/corpus.hpp"
#include "evaluation/settings.hpp"
#include "genotype/slots.hpp"
#include "training/trainer.hpp"

namespace nas::testing {
namespace {

using Integer = std::int64_t;

Corpus recall() {
  const auto& plugin = corpora().at("mqar");
  Parameters settings(plugin.description.settings);
  settings.set("vocabulary", Integer{64});
  settings.set("pairs", Integer{4});
  settings.set("train_examples", Integer{50000});
  return plugin.make(settings, /*context=*/32, default_data_location());
}

TEST(Recall, VanillaAttentionLearnsIt) {
  const auto corpus = recall();
  Architecture architecture;
  architecture.stack = {vanilla_mechanism(Semantics::corrected)};
  architecture.stack.front().set("attention_dropout", 0.0);
  architecture.layers = 2;
  architecture.width = 32;
  architecture.heads = 4;
  architecture.context = corpus.train.length;
  architecture.vocabulary = corpus.vocabulary;
  architecture.dropout = 0.0;
  Parameters training(training_settings());
  training.set("steps", Integer{6400});
  training.set("batch_size", Integer{32});
  training.set("learning_rate", 1e-3);
  training.set("schedule", std::string("constant"));
  training.set("warmup_steps", Integer{30});
  training.set("checkpoints", std::vector<Integer>{1600, 3200, 4000, 4800, 5600});
  const TrainingJob job{.architecture = architecture,
                        .settings = TrainingSettings(training),
                        .run_seed = 42,
                        .replicate = 0};
  const auto result = train({&job, 1}, corpus, {}).front();
  ASSERT_EQ(result.status, Status::ok) << result.reason;
  for (const auto& point : result.curve) {
    std::cout << "step " << point.step << ": accuracy " << point.valid.accuracy() << ", nll "
              << point.valid.nll / static_cast<double>(point.valid.tokens) << '\n';
  }
  const auto& valid = result.curve.back().valid;
  ASSERT_TRUE(corpus.chance);
  EXPECT_GT(valid.accuracy(), 0.9) << "chance is " << corpus.chance->accuracy;
  EXPECT_LT(valid.nll / static_cast<double>(valid.tokens), corpus.chance->nll / 3.0);
}

}  // namespace
}  // namespace nas::testing
