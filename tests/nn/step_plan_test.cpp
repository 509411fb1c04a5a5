// Steps in parts of a batch against steps of the whole.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "array_step.hpp"
#include "evaluation/settings.hpp"
#include "genotype/mechanism_name.hpp"
#include "ops/memory.hpp"
#include "small_corpus.hpp"
#include "training/step.hpp"
#include "training/trainer.hpp"

namespace nas {
namespace {

constexpr std::int64_t kBatch = 7;
constexpr std::int64_t kTokens = 20;

/// Of two models, one sequence of which asks nothing, and others for 1 to 20 tokens.
Batch uneven_batch() {
  const auto generator = nn::make_generator(at::kCPU, 3);
  const auto draw = [&] {
    return at::randint(29, {2, kBatch, kTokens}, generator, at::TensorOptions(at::kLong));
  };
  Batch batch{draw(), draw()};
  for (std::int64_t b = 0; b < kBatch; ++b) {
    batch.target.select(1, b).narrow(1, 0, kTokens - b * b / 3).fill_(kNotScored);
  }
  batch.target[0][2].fill_(kNotScored);
  return batch;
}

struct Gradients {
  torch::Tensor losses;
  std::map<std::string, torch::Tensor> by_name;
};

/// With dropout everywhere. @param micro  as of StepPlan.
Gradients gradients_of(const std::vector<std::string>& mechanisms, std::int64_t micro,
                       at::ScalarType type, NumericalMode mode) {
  std::vector<Architecture> architectures;
  for (const auto& mechanism : mechanisms) {
    architectures.push_back(nn::test::small(mechanism));
    architectures.back().dropout = 0.2;
  }
  nn::TransformerArray models(architectures, mode);
  models.initialise({{4, 0}, {5, 1}});
  models.to(at::kCPU, type);
  Gradients found{at::zeros({2}, at::TensorOptions(at::kDouble)), {}};
  add_gradients(models, {.batch = kBatch, .micro = micro}, uneven_batch(),
                {.training = true, .seeds = {11, 12}}, found.losses);
  for (const auto& parameter : models.parameters()) {
    if (parameter.tensor.grad().defined()) found.by_name[parameter.name] = parameter.tensor.grad();
  }
  return found;
}

void expect_near(const Gradients& ours, const Gradients& whole, double tolerance) {
  EXPECT_LT((ours.losses - whole.losses).abs().max().item<double>(), tolerance);
  ASSERT_EQ(ours.by_name.size(), whole.by_name.size());
  for (const auto& [name, gradient] : whole.by_name) {
    const auto difference = (ours.by_name.at(name) - gradient).abs().max().item<double>();
    EXPECT_LT(difference, tolerance) << name;
  }
}

TEST(StepPlan, GradientsOfPartsAddUpToThoseOfTheBatch) {
  const std::vector<std::vector<std::string>> arrays{
      {"dot|softmax|none|fixed|bias|0.1", "additive|sparsemax|output_gate|learned|no_bias|0.3"},
      {"cosine|sigmoid_norm|input_gate|per_query|no_bias|0.1",
       "bilinear|entmax15|normed_highway|shifted_abs|bias|0.2"}};
  for (const auto mode : {NumericalMode::reference, NumericalMode::exact}) {
    for (const auto& mechanisms : arrays) {
      const auto whole = gradients_of(mechanisms, 0, at::kDouble, mode);
      for (const std::int64_t micro : {1, 2, 3, 6}) {
        SCOPED_TRACE(micro);
        expect_near(gradients_of(mechanisms, micro, at::kDouble, mode), whole, 1e-12);
      }
      const auto single = gradients_of(mechanisms, 0, at::kFloat, mode);
      expect_near(gradients_of(mechanisms, 2, at::kFloat, mode), single, 1e-6);
    }
  }
}

TEST(StepPlan, APartOfTheBatchsSizeIsTheBatch) {
  const std::vector<std::string> mechanisms{"dot|softmax|none|fixed|bias|0.1",
                                            "dot|sparsemax|none|fixed|bias|0.1"};
  const auto whole = gradients_of(mechanisms, 0, at::kFloat, NumericalMode::exact);
  for (const std::int64_t micro : {7, 100}) {
    const auto same = gradients_of(mechanisms, micro, at::kFloat, NumericalMode::exact);
    EXPECT_TRUE(same.losses.equal(whole.losses));
    for (const auto& [name, gradient] : whole.by_name) {
      EXPECT_TRUE(same.by_name.at(name).equal(gradient)) << name;
    }
  }
}

class MicroBatches : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { nn::install_cpu_allocator(); }

  /// Of a batch of 8 sequences, of which the windows ask for unequal numbers of targets.
  [[nodiscard]] TrainingJob job_of(std::int64_t micro) const {
    Parameters parameters(training_settings());
    parameters.set("steps", std::int64_t{20});
    parameters.set("batch_size", std::int64_t{8});
    parameters.set("learning_rate", 1e-3);
    parameters.set("evaluation_batch_size", std::int64_t{1});
    parameters.set("micro_batch", micro);
    auto architecture = nn::test::small("dot|softmax|none|fixed|bias|0.1");
    architecture.dropout = 0.1;
    return {.architecture = architecture, .settings = TrainingSettings(parameters), .run_seed = 5};
  }

  static Corpus uneven_corpus() {
    auto corpus = test::counting_corpus(29, 37, 40);
    corpus.train.targets = next_token_targets(corpus.train);
    for (std::size_t i = 0; i < corpus.train.targets.size(); ++i) {
      const auto window = i / 37;
      if (i % 37 < window) corpus.train.targets[i] = static_cast<std::int32_t>(kNotScored);
    }
    return corpus;
  }

  Corpus corpus_ = uneven_corpus();
};

TEST_F(MicroBatches, TrainTheSameModelInLessMemory) {
  const auto whole = train(std::vector{job_of(0)}, corpus_, {}).front();
  ASSERT_EQ(whole.status, Status::ok) << whole.reason;
  auto peak = whole.peak_bytes;
  for (const std::int64_t micro : {4, 1}) {
    const auto parts = train(std::vector{job_of(micro)}, corpus_, {}).front();
    EXPECT_NEAR(parts.curve.back().train_nll, whole.curve.back().train_nll, 1e-5);
    EXPECT_NEAR(parts.curve.back().valid.nll / whole.curve.back().valid.nll, 1.0, 1e-4);
    EXPECT_LT(parts.peak_bytes, peak) << micro;
    peak = parts.peak_bytes;
    RecordProperty("peak_bytes_" + std::to_string(micro), std::to_string(peak));
  }
}

TEST_F(MicroBatches, OfAnArrayAreThoseOfTheModelAlone) {
  auto other = job_of(3);
  other.architecture.stack = {
      parse_mechanism("cosine|sparsemax|none|fixed|bias|0.2", Semantics::corrected)};
  const std::vector jobs{job_of(3), other};
  const auto together = train(jobs, corpus_, {});
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto alone = train({&jobs[i], 1}, corpus_, {}).front();
    EXPECT_EQ(together[i].curve.back().train_nll, alone.curve.back().train_nll);
    EXPECT_EQ(together[i].curve.back().valid.nll, alone.curve.back().valid.nll);
  }
}

TEST_F(MicroBatches, OfOtherSizesAreOtherArrays) {
  EXPECT_TRUE(fit_together(job_of(2), job_of(2)));
  EXPECT_FALSE(fit_together(job_of(2), job_of(4)));
}

TEST_F(MicroBatches, AreWhatTooLittleMemorySuggests) {
  const auto reason_of = [&](std::int64_t micro) {
    TrainingContext context;
    context.memory_limit = 100'000;
    const auto result = train(std::vector{job_of(micro)}, corpus_, context).front();
    EXPECT_EQ(result.status, Status::out_of_memory);
    return result.reason;
  };
  const std::string suggests = " computes the gradients of a batch in smaller parts";
  EXPECT_NE(reason_of(0).find("; training.micro_batch = 4" + suggests), std::string::npos);
  EXPECT_NE(reason_of(4).find("; training.micro_batch = 2" + suggests), std::string::npos);
  EXPECT_EQ(reason_of(1).find(suggests), std::string::npos) << "there is no smaller part";
}

}  // namespace
}  // namespace nas
