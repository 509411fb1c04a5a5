// Arrays of models: each model's numbers are, to the bit, those of the model alone.

#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "core/durable_file.hpp"
#include "core/stop.hpp"
#include "core/temporary_folder.hpp"
#include "evaluation/settings.hpp"
#include "genotype/architecture_name.hpp"
#include "genotype/mechanism_name.hpp"
#include "mechanisms.hpp"
#include "nn/attention.hpp"
#include "ops/memory.hpp"
#include "small_corpus.hpp"
#include "training/trainer.hpp"

namespace nas {
namespace {

namespace fs = std::filesystem;
using nn::Transformer;
using nn::TransformerArray;
using test::settings;

/// Nine mechanisms in which every option of the paper's genes occurs, with and without biases.
std::vector<Mechanism> various_mechanisms() {
  std::vector<Mechanism> mechanisms;
  for (const auto* text : {
           "dot|softmax|none|fixed|bias|0.1",
           "additive|sparsemax|output_gate|learned|no_bias|0",
           "silu_dot|relu_norm|highway|fixed|bias|0.2",
           "cosine|sigmoid_norm|input_gate|per_query|no_bias|0.1",
           "bilinear|entmax15|normed_highway|shifted_abs|bias|0",
           "dot|top_k|output_gate|per_query|bias|0.3",
           "additive|softmax1|none|learned|bias|0.1",
           "cosine|topk_quarter|highway|sqrt_d|no_bias|0.1",
           "silu_dot|softmax|input_gate|sequence_mean|bias|0.1",
       }) {
    mechanisms.push_back(parse_mechanism(text, Semantics::corrected));
  }
  return mechanisms;
}

Architecture small(const Mechanism& mechanism) {
  return {.stack = {mechanism}, .width = 24, .heads = 3, .context = 19, .vocabulary = 137};
}

torch::Tensor random_tokens(std::int64_t models) {
  auto generator = at::detail::createCPUGenerator(5);
  return at::randint(137, {models, 7, 19}, generator, at::TensorOptions(at::kLong));
}

using Gradients = std::map<std::string, torch::Tensor>;

/// The gradients of one model of an array, by name.
Gradients gradients_of(const TransformerArray& models, std::int64_t model) {
  Gradients gradients;
  for (const auto& parameter : models.parameters()) {
    for (std::size_t i = 0; i < parameter.models.size(); ++i) {
      if (parameter.models[i] != model) continue;
      gradients[parameter.name] = parameter.tensor.grad()[static_cast<std::int64_t>(i)];
    }
  }
  return gradients;
}

struct Step {
  torch::Tensor losses;  ///< (R)
  std::vector<Gradients> gradients;
  nn::TokenScores scores;
};

/// A step of the models at `places` of an array with these seeds and tokens.
Step step_of(const std::vector<Architecture>& all, const std::vector<std::size_t>& places,
             NumericalMode mode) {
  std::vector<Architecture> architectures;
  std::vector<nn::StartSeed> seeds;
  std::vector<torch::Tensor> tokens;
  nn::Pass pass{.training = true, .seeds = {}};
  const auto all_tokens = random_tokens(static_cast<std::int64_t>(all.size()));
  for (const auto place : places) {
    architectures.push_back(all[place]);
    seeds.push_back({place, static_cast<std::int64_t>(place) / 2});
    tokens.push_back(all_tokens[static_cast<std::int64_t>(place)]);
    pass.seeds.push_back(100 + place);
  }
  TransformerArray models(architectures, mode);
  models.initialise(seeds);
  const auto input = at::stack(tokens);
  const auto target = input.roll(1, 2);
  Step step;
  step.losses = models.loss(input, target, pass);
  step.losses.sum().backward();
  for (std::int64_t model = 0; model < models.num_models(); ++model)
    step.gradients.push_back(gradients_of(models, model));
  step.scores = models.scores(input, target);
  return step;
}

void expect_same(const Step& array, std::size_t place, const Step& alone, std::size_t alone_place,
                 const std::string& what) {
  const auto r = static_cast<std::int64_t>(place);
  const auto one = static_cast<std::int64_t>(alone_place);
  EXPECT_TRUE(array.losses[r].equal(alone.losses[one])) << what;
  EXPECT_TRUE(array.scores.nll[r].equal(alone.scores.nll[one])) << what;
  EXPECT_TRUE(array.scores.correct[r].equal(alone.scores.correct[one])) << what;
  const auto& expected = alone.gradients[alone_place];
  ASSERT_EQ(array.gradients[place].size(), expected.size()) << what;
  for (const auto& [name, gradient] : array.gradients[place]) {
    EXPECT_TRUE(gradient.equal(expected.at(name))) << what << " " << name;
  }
}

class ArrayOfModels : public ::testing::TestWithParam<NumericalMode> {
 protected:
  static void SetUpTestSuite() { nn::install_cpu_allocator(); }
};

TEST_P(ArrayOfModels, OfDifferentMechanismsComputesWhatEachComputesAlone) {
  std::vector<Architecture> all;
  for (const auto& mechanism : various_mechanisms()) all.push_back(small(mechanism));
  const std::vector<std::size_t> places{0, 1, 2, 3, 4, 5, 6, 7, 8};
  const int before = at::get_num_threads();
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    const auto together = step_of(all, places, GetParam());
    // In the reference, the number of threads is part of the result.
    if (GetParam() != NumericalMode::reference) at::set_num_threads(1);
    for (const auto place : places) {
      const auto alone = step_of(all, {place}, GetParam());
      expect_same(together, place, alone, 0,
                  to_string(all[place].stack.front()) + " threads " + std::to_string(threads));
    }
    const auto some = step_of(all, {8, 1, 4, 6}, GetParam());
    expect_same(some, 0, together, 8, "an array of some");
    expect_same(some, 2, together, 4, "an array of some");
  }
  at::set_num_threads(before);
}

/// Together, by two threads where their number is no part of the result, and each by itself.
Step expect_each_alone(const std::vector<Architecture>& all, NumericalMode mode,
                       const std::string& what = "") {
  std::vector<std::size_t> places(all.size());
  std::iota(places.begin(), places.end(), 0U);
  const int before = at::get_num_threads();
  at::set_num_threads(mode == NumericalMode::reference ? 1 : 2);
  auto together = step_of(all, places, mode);
  at::set_num_threads(1);
  for (const auto place : places) {
    expect_same(together, place, step_of(all, {place}, mode), 0,
                what + std::to_string(place) + " " + to_string(all[place].stack.front()));
  }
  at::set_num_threads(before);
  return together;
}

TEST_P(ArrayOfModels, OfReplicatesComputesWhatEachComputesAlone) {
  for (const auto& mechanism : various_mechanisms())
    expect_each_alone(std::vector<Architecture>(3, small(mechanism)), GetParam());
}

/// Parts around attention, in a frame each; layers differ.
TEST_P(ArrayOfModels, OfOtherFramesComputesWhatEachComputesAlone) {
  for (const std::string genes :
       {"model{norm=rms,norm_place=sandwich,bias=none}/", "model{block=parallel,norm=rms,tied=0}/",
        "model{position_embedding=sinusoidal,norm_place=post}/",
        "model{position_embedding=none,norm=rms}/"}) {
    std::vector<Architecture> all;
    for (const auto* layers :
         {"attn+swiglu/attn+relu2", "attn{normalization=sparsemax}+swiglu/attn+relu2",
          "attn+swiglu/attn{temperature=learned}+relu2"}) {
      all.push_back(parse_model(genes + layers, small(vanilla_mechanism(Semantics::corrected))));
    }
    expect_each_alone(all, GetParam(), genes);
  }
}

/// A layer's mixers are of several kinds, also between like ones.
TEST_P(ArrayOfModels, OfHybridsComputesWhatEachComputesAlone) {
  for (const std::string genes :
       {"", "model{block=parallel,norm=rms}/", "model{norm_place=sandwich}/"}) {
    std::vector<Architecture> all;
    for (const auto* layers :
         {"attn{temperature=learned}/none+gelu/attn", "none+gelu/2*attn{gating=highway}",
          "attn/none+gelu/attn{normalization=sparsemax}", "2*attn/none+gelu"}) {
      all.push_back(parse_model(genes + layers, small(vanilla_mechanism(Semantics::corrected))));
    }
    const auto together = expect_each_alone(all, GetParam(), genes);
    expect_same(step_of(all, {2, 0}, GetParam()), 1, together, 0, "an array of some");
  }
}

/// Heads and tensors that are divided among threads.
TEST_P(ArrayOfModels, OfWideModelsComputesWhatEachComputesAlone) {
  std::vector<Architecture> all;
  for (const auto& mechanism : various_mechanisms()) {
    all.push_back(small(mechanism));
    all.back().width = 192;
    all.back().heads = 12;
    all.back().layers = 1;
  }
  expect_each_alone(all, GetParam());
}

/// A normalization that is computed by LibTorch's operations in every mode, and the scores with it.
class PlainSoftmax final : public nn::Normalization {
 public:
  torch::Tensor weights(const torch::Tensor& scores, const torch::Tensor& visible) const override {
    return nn::softmax_over(scores, visible);
  }
};
NAS_REGISTER_NORMALIZATION(PlainSoftmax, .key = "plain_softmax", .summary = "softmax");

TEST_P(ArrayOfModels, WithoutAFusedFormComputesWhatEachComputesAlone) {
  std::vector<Architecture> all;
  for (const auto* similarity : {"dot", "silu_dot", "cosine", "bilinear", "additive"}) {
    for (int replicate = 0; replicate < 2; ++replicate) {
      all.push_back(small(parse_mechanism(
          std::string(similarity) + "|plain_softmax|none|learned|bias|0.1", Semantics::corrected)));
    }
  }
  expect_each_alone(all, GetParam());
}

INSTANTIATE_TEST_SUITE_P(, ArrayOfModels,
                         ::testing::Values(NumericalMode::reference, NumericalMode::exact,
                                           NumericalMode::fast),
                         [](const auto& given) { return std::string(to_string(given.param)); });

TEST(TransformerArray, RefusesModelsOfOtherSizes) {
  auto wide = small(vanilla_mechanism(Semantics::corrected));
  const auto narrow = wide;
  wide.width = 48;
  EXPECT_FALSE(nn::alike(wide, narrow));
  EXPECT_THROW(TransformerArray({wide, narrow}, NumericalMode::exact), std::invalid_argument);
  EXPECT_THROW(TransformerArray({}, NumericalMode::exact), std::invalid_argument);
}

void expect_same_result(const TrainingResult& array, const TrainingResult& alone) {
  EXPECT_EQ(array.status, alone.status);
  EXPECT_EQ(array.reason, alone.reason);
  ASSERT_EQ(array.curve.size(), alone.curve.size());
  for (std::size_t i = 0; i < alone.curve.size(); ++i) {
    EXPECT_EQ(array.curve[i].step, alone.curve[i].step);
    const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    EXPECT_TRUE(same(array.curve[i].train_nll, alone.curve[i].train_nll)) << i;
    EXPECT_TRUE(same(array.curve[i].valid.nll, alone.curve[i].valid.nll)) << i;
    EXPECT_EQ(array.curve[i].valid.correct, alone.curve[i].valid.correct) << i;
  }
  EXPECT_EQ(array.test.nll, alone.test.nll);
}

class TrainingInArrays : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { nn::install_cpu_allocator(); }
  void TearDown() override { request_stop(false); }

  TrainingJob job(const std::string& mechanism, const TrainingSettings& how, std::uint64_t seed = 5,
                  std::int64_t replicate = 0) const {
    auto architecture = small(parse_mechanism(mechanism, Semantics::corrected));
    architecture.layers = 1;
    architecture.context = corpus_.train.length;
    architecture.vocabulary = corpus_.vocabulary;
    return {.architecture = architecture,
            .settings = how,
            .run_seed = seed,
            .replicate = replicate,
            .checkpoint_name = mechanism.substr(0, mechanism.find('|')) + std::to_string(seed)};
  }

  TrainingResult alone(const TrainingJob& job) const {
    return train({&job, 1}, corpus_, context_).front();
  }

  void expect_as_alone(const std::vector<TrainingJob>& jobs) const {
    const auto together = train(jobs, corpus_, context_);
    ASSERT_EQ(together.size(), jobs.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      SCOPED_TRACE(std::to_string(i) + " " + to_string(jobs[i].architecture.stack.front()));
      expect_same_result(together[i], alone(jobs[i]));
    }
  }

  const TemporaryFolder temporary_;
  Corpus corpus_ = test::counting_corpus(11, 12, 40);
  TrainingContext context_;
};

TEST_F(TrainingInArrays, DifferentMechanismsSeedsAndRates) {
  auto slow = settings(40, {10, 20}, 1e-3);
  auto decaying = settings(40, {10, 20});
  decaying.weight_decay = 0.3;
  decaying.clip_norm = 0.1;
  decaying.schedule = "cosine";
  expect_as_alone({job("dot|softmax|none|fixed|bias|0.1", settings(40, {10, 20})),
                   job("dot|softmax|none|fixed|bias|0.1", settings(40, {10, 20}), 5, 1),
                   job("additive|sparsemax|highway|learned|no_bias|0", slow, 6),
                   job("cosine|top_k|output_gate|per_query|bias|0.2", decaying, 7)});
}

TEST_F(TrainingInArrays, Hybrids) {
  std::vector<TrainingJob> jobs;
  for (const auto* layers : {"attn/none+gelu", "none+gelu/attn{temperature=learned}", "2*attn"}) {
    jobs.push_back(job("dot|softmax|none|fixed|bias|0.1", settings(40, {10, 20}), 5 + jobs.size()));
    jobs.back().architecture = parse_model(layers, jobs.back().architecture);
  }
  expect_as_alone(jobs);
}

TEST_F(TrainingInArrays, ADivergedMatePoisonsNobody) {
  const auto jobs =
      std::vector{job("dot|softmax|none|fixed|bias|0.1", settings(130, {50})),
                  job("dot|softmax|none|fixed|bias|0.1", settings(130, {50}, 1e30), 6),
                  job("silu_dot|relu_norm|highway|fixed|bias|0.1", settings(130, {}, 1e30), 7),
                  job("additive|softmax1|none|learned|bias|0", settings(130, {50}), 8)};
  expect_as_alone(jobs);
  const auto results = train(jobs, corpus_, context_);
  EXPECT_EQ(results[0].status, Status::ok);
  EXPECT_EQ(results[1].status, Status::diverged);
  EXPECT_EQ(results[2].status, Status::diverged);
  EXPECT_EQ(results[3].status, Status::ok);
  EXPECT_LT(results[3].curve.back().valid.perplexity(), 11.0);
}

TEST_F(TrainingInArrays, WhoIsDoneLeavesAndTheOthersGoOn) {
  auto hopeless = job("cosine|softmax|none|fixed|bias|0.1", settings(60, {10, 20, 30}), 6);
  hopeless.stop_above = {{20, 0.01}};
  const auto jobs =
      std::vector{job("dot|softmax|none|fixed|bias|0.1", settings(25, {10})), hopeless,
                  job("additive|sparsemax|none|fixed|bias|0", settings(60, {30}), 7),
                  job("dot|entmax15|none|learned|bias|0", settings(45, {}), 8)};
  expect_as_alone(jobs);
  const auto results = train(jobs, corpus_, context_);
  EXPECT_EQ(results[0].curve.back().step, 25);
  EXPECT_EQ(results[1].status, Status::stopped_early);
  EXPECT_EQ(results[1].curve.back().step, 20);
  EXPECT_EQ(results[2].curve.back().step, 60);
  EXPECT_EQ(results[3].curve.back().step, 45);
}

TEST_F(TrainingInArrays, StoppedArraysContinueInOtherOnes) {
  const auto jobs =
      std::vector{job("dot|softmax|none|fixed|bias|0.1", settings(60, {20, 40})),
                  job("additive|sparsemax|highway|fixed|bias|0", settings(60, {20}), 6),
                  job("cosine|top_k|none|learned|bias|0", settings(60, {20}), 7)};
  std::vector<TrainingResult> expected;
  for (const auto& one : jobs) expected.push_back(alone(one));
  context_.checkpoint_folder = temporary_.path() / "checkpoints";
  auto often = jobs;
  for (auto& one : often) one.settings.checkpoint_minutes = 1e-9;  // after every step
  std::atomic<bool> done{false};
  std::thread stopper([&] {
    // The last one is written last.
    while (!done && !fs::exists(context_.checkpoint_folder / "cosine7_0.pt")) {
      std::this_thread::yield();
    }
    request_stop();
  });
  EXPECT_THROW((void)train(often, corpus_, context_), StopRequested);
  done = true;
  stopper.join();
  request_stop(false);
  // One alone, the others together, in another order.
  expect_same_result(train({&often[1], 1}, corpus_, context_).front(), expected[1]);
  const std::vector rest{often[2], often[0]};
  const auto results = train(rest, corpus_, context_);
  expect_same_result(results[0], expected[2]);
  expect_same_result(results[1], expected[0]);
}

TEST_F(TrainingInArrays, PausedAtRungsAndMovedBetweenArraysIsAsUninterrupted) {
  const std::vector<std::int64_t> rungs{10, 20, 40};
  const auto jobs =
      std::vector{job("dot|softmax|none|fixed|bias|0.1", settings(60, rungs)),
                  job("additive|sparsemax|highway|fixed|bias|0", settings(60, rungs), 6),
                  job("cosine|top_k|none|learned|bias|0", settings(60, rungs), 7)};
  const auto checkpoint_of = [this](const TrainingJob& job) {
    return checkpoint_file(context_.checkpoint_folder, job.checkpoint_name, job.replicate);
  };
  context_.checkpoint_folder = temporary_.path() / "whole";
  const auto expected = train(jobs, corpus_, context_);
  const auto all_weights = [&] {
    std::vector<std::string> bytes;
    for (const auto& one : jobs) {
      const auto file = temporary_.path() / "weights.pt";
      save_weights(checkpoint_of(one), one.checkpoint_name, one.replicate, file);
      bytes.push_back(read_bytes(file));
    }
    return bytes;
  };
  const auto expected_weights = all_weights();

  context_.checkpoint_folder = temporary_.path() / "paused";
  const auto until = [](std::vector<TrainingJob> some, std::int64_t rung) {
    for (auto& one : some) one.until = rung;
    return some;
  };
  const auto expect_paused = [&](const std::vector<TrainingJob>& some,
                                 const std::vector<std::size_t>& which, std::size_t points) {
    const auto results = train(some, corpus_, context_);
    for (std::size_t i = 0; i < some.size(); ++i) {
      SCOPED_TRACE(some[i].checkpoint_name + " until " + std::to_string(some[i].until));
      auto prefix = expected[which[i]];
      prefix.status = Status::paused;
      prefix.curve.resize(points);
      expect_same_result(results[i], prefix);
      EXPECT_TRUE(fs::exists(checkpoint_of(some[i])));
    }
  };
  expect_paused(until(jobs, 10), {0, 1, 2}, 1);
  expect_paused(until({jobs[2], jobs[0]}, 20), {2, 0}, 2);
  expect_paused(until({jobs[1]}, 20), {1}, 2);
  expect_paused(until({jobs[1]}, 10), {1}, 2);  // it is further already, and stays there
  // One goes on to the end at once, beside one that pauses again.
  auto mixed = until({jobs[1], jobs[0]}, 40);
  mixed[0].until = 0;
  const auto results = train(mixed, corpus_, context_);
  expect_same_result(results[0], expected[1]);
  EXPECT_EQ(results[1].status, Status::paused);
  expect_paused(until({jobs[2]}, 40), {2}, 3);
  const auto rest = train(std::vector{jobs[2], jobs[0]}, corpus_, context_);
  expect_same_result(rest[0], expected[2]);
  expect_same_result(rest[1], expected[0]);
  EXPECT_TRUE(all_weights() == expected_weights);
}

TEST_F(TrainingInArrays, WhatIsPausedWithoutACheckpointBeginsAgain) {
  auto one = job("dot|softmax|none|fixed|bias|0.1", settings(40, {20}));
  const auto whole = alone(one);
  one.until = 20;
  EXPECT_EQ(alone(one).status, Status::paused);
  one.until = 40;
  expect_same_result(alone(one), whole);
  one.until = 30;
  EXPECT_THROW((void)alone(one), std::logic_error);
}

TEST_F(TrainingInArrays, WhatEndsBeforeItsRungIsNotPaused) {
  auto hopeless = job("cosine|softmax|none|fixed|bias|0.1", settings(60, {10, 20}), 6);
  hopeless.stop_above = {{20, 0.01}};
  hopeless.until = 20;
  EXPECT_EQ(alone(hopeless).status, Status::stopped_early);
  auto diverging = job("dot|softmax|none|fixed|bias|0.1", settings(130, {50}, 1e30), 6);
  diverging.until = 50;
  EXPECT_EQ(alone(diverging).status, Status::diverged);
}

TEST_F(TrainingInArrays, WhoWasDoneBeforeAStopIsNotTrainedAgain) {
  auto hopeless = job("cosine|softmax|none|fixed|bias|0.1", settings(900, {4}), 6);
  hopeless.stop_above = {{4, 0.01}};
  const auto short_one = job("dot|softmax|none|fixed|bias|0.1", settings(6, {3}));
  const auto long_one = job("additive|softmax|none|fixed|bias|0", settings(100000, {}), 7);
  const auto expected = alone(short_one);
  const auto expected_hopeless = alone(hopeless);
  context_.checkpoint_folder = temporary_.path() / "checkpoints";
  std::atomic<bool> done{false};
  std::thread stopper([&] {
    while (!done && !fs::exists(context_.checkpoint_folder / "dot5_0.pt")) {
      std::this_thread::yield();
    }
    request_stop();
  });
  const std::vector jobs{short_one, hopeless, long_one};
  EXPECT_THROW((void)train(jobs, corpus_, context_), StopRequested);
  done = true;
  stopper.join();
  request_stop(false);
  // Even with other settings of the steps before: they are not done again.
  auto finished = short_one;
  finished.settings.learning_rate = 1e30;
  auto stopped = hopeless;
  stopped.settings.learning_rate = 1e30;
  const auto results = train(std::vector{finished, stopped}, corpus_, context_);
  expect_same_result(results[0], expected);
  expect_same_result(results[1], expected_hopeless);
  EXPECT_EQ(results[1].status, Status::stopped_early);
}

TEST_F(TrainingInArrays, ShareTheirTimeAndMemory) {
  const auto one = job("dot|softmax|none|fixed|bias|0.1", settings(60, {30}));
  const auto lone = alone(one);
  const auto results = train(std::vector(4, one), corpus_, context_);
  for (const auto& result : results) {
    expect_same_result(result, lone);
    EXPECT_GT(result.seconds, 0.0);
    EXPECT_GT(result.cpu_seconds, 0.0);
    EXPECT_LE(result.cpu_seconds, 1.05 * result.seconds);
    EXPECT_GT(result.peak_bytes, lone.peak_bytes / 2);
    EXPECT_LT(result.peak_bytes, 2 * lone.peak_bytes);
  }
}

TEST_F(TrainingInArrays, LackOfMemoryIsSaidByAllThatAreNotDone) {
  const auto jobs = std::vector(3, job("dot|softmax|none|fixed|bias|0.1", settings(20, {})));
  context_.memory_limit = alone(jobs[0]).peak_bytes / 2;
  for (const auto& result : train(jobs, corpus_, context_)) {
    EXPECT_EQ(result.status, Status::out_of_memory);
    EXPECT_NE(result.reason.find("would exceed the memory limit"), std::string::npos)
        << result.reason;
  }
}

TEST_F(TrainingInArrays, MisfitsAreTrainedOneAfterTheOther) {
  auto wide = job("dot|softmax|none|fixed|bias|0.1", settings(20, {}));
  wide.architecture.width = 48;
  expect_as_alone({job("dot|softmax|none|fixed|bias|0.1", settings(20, {})), wide,
                   job("cosine|softmax|none|fixed|bias|0.1", settings(20, {}), 6)});
}

TEST_F(TrainingInArrays, FitTogetherWhatIsAlike) {
  const auto one = job("dot|softmax|none|fixed|bias|0.1", settings(20, {}));
  auto other = job("additive|entmax15|highway|learned|no_bias|0", settings(50, {10}, 1e-3), 9, 3);
  EXPECT_TRUE(fit_together(one, other));
  other.settings.batch_size = 9;
  EXPECT_FALSE(fit_together(one, other));
  other = one;
  other.architecture.width = 48;
  EXPECT_FALSE(fit_together(one, other));
  EXPECT_EQ(fitting_groups(std::vector{one, other, one, other, one}),
            (std::vector<std::vector<std::size_t>>{{0, 2, 4}, {1, 3}}));
  EXPECT_GE(best_array(one, corpus_, context_, 4), 1);
  EXPECT_EQ(best_array(one, corpus_, context_, 1), 1);
}

}  // namespace
}  // namespace nas
