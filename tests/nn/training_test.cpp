#include <filesystem>
#include <fstream>
#include <map>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/serialize.h>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/hash.hpp"
#include "core/seed.hpp"
#include "core/stop.hpp"
#include "core/temporary_folder.hpp"
#include "evaluation/settings.hpp"
#include "genotype/mechanism_name.hpp"
#include "ops/memory.hpp"
#include "ops/model_failure.hpp"
#include "small_corpus.hpp"
#include "training/batches.hpp"
#include "training/checkpoint.hpp"
#include "training/trainer.hpp"
#include "training/validation.hpp"
#include "unit/forked.hpp"
#include "unit/message_of.hpp"

namespace nas {
namespace {

namespace fs = std::filesystem;
using test::settings;

Architecture tiny(const Corpus& corpus, const std::string& mechanism) {
  return {.stack = {parse_mechanism(mechanism, Semantics::corrected)},
          .layers = 1,
          .width = 16,
          .heads = 2,
          .context = corpus.train.length,
          .vocabulary = corpus.vocabulary};
}

TrainingResult train_once(const Architecture& architecture, const Corpus& corpus,
                          const TrainingSettings& how, const TrainingContext& context = {},
                          std::int64_t replicate = 0, std::uint64_t seed = 5,
                          std::map<std::int64_t, double> stop_above = {}) {
  const TrainingJob job{.architecture = architecture,
                        .settings = how,
                        .run_seed = seed,
                        .replicate = replicate,
                        .stop_above = std::move(stop_above),
                        .checkpoint_name = "x"};
  return train({&job, 1}, corpus, context).front();
}

void expect_same_curve(const TrainingResult& a, const TrainingResult& b) {
  ASSERT_EQ(a.curve.size(), b.curve.size());
  for (std::size_t i = 0; i < a.curve.size(); ++i) {
    EXPECT_EQ(a.curve[i].step, b.curve[i].step);
    EXPECT_EQ(a.curve[i].train_nll, b.curve[i].train_nll);
    EXPECT_EQ(a.curve[i].valid.nll, b.curve[i].valid.nll);
  }
}

class TrainingTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { nn::install_cpu_allocator(); }
  void TearDown() override { request_stop(false); }
  const TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  Corpus corpus_ = test::counting_corpus(11, 12, 40);
  Architecture vanilla_ = tiny(corpus_, "dot|softmax|none|fixed|bias|0.1");
};

TEST_F(TrainingTest, LearnsAndRecordsItsCurve) {
  const auto result = train_once(vanilla_, corpus_, settings(150, {50, 100}));
  ASSERT_EQ(result.status, Status::ok) << result.reason;
  ASSERT_EQ(result.curve.size(), 3U);
  EXPECT_EQ(result.curve[0].step, 50);
  EXPECT_EQ(result.curve[2].step, 150);
  EXPECT_EQ(result.curve[2].valid.tokens, corpus_.valid.num_scored());
  EXPECT_LT(result.curve[2].valid.perplexity(), 2.0);
  EXPECT_GT(result.curve[2].valid.accuracy(), 0.9);
  EXPECT_LT(result.curve[2].train_nll, result.curve[0].train_nll);
  EXPECT_GT(result.peak_bytes, 0);
}

TEST_F(TrainingTest, TellsHowFarItIs) {
  struct Told {
    std::int64_t step, steps;
    double loss;
  };
  std::vector<Told> told;
  TrainingContext context;
  context.on_step = [&told](std::int64_t step, std::int64_t steps, double loss) {
    if (step % 50 == 0 && (told.empty() || told.back().step != step)) {
      told.push_back({step, steps, loss});
    }
  };
  const auto how = settings(150, {50, 100});
  const auto result = train_once(vanilla_, corpus_, how, context);
  ASSERT_EQ(told.size(), 3U);
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i].step, result.curve[i].step);
    EXPECT_EQ(told[i].steps, 150);
    EXPECT_DOUBLE_EQ(told[i].loss, result.curve[i].train_nll);
  }
  expect_same_curve(result, train_once(vanilla_, corpus_, how));
}

TEST_F(TrainingTest, ScoresTheTestSplitWhereAsked) {
  Parameters parameters(training_settings());
  parameters.set("steps", std::int64_t{60});
  parameters.set("batch_size", std::int64_t{8});
  parameters.set("learning_rate", 1e-2);
  const auto without = train_once(vanilla_, corpus_, TrainingSettings(parameters));
  EXPECT_EQ(without.test.tokens, 0);
  parameters.set("score_test", true);
  corpus_.test = test::counting_corpus(11, 12, 7).train;
  const auto with = train_once(vanilla_, corpus_, TrainingSettings(parameters));
  EXPECT_EQ(with.test.tokens, corpus_.test.num_scored());
  EXPECT_NE(with.test.nll, with.curve.back().valid.nll);
  EXPECT_GT(with.test.nll, 0.0);
  expect_same_curve(without, with);
  parameters.set("validation_windows", std::int64_t{3});
  EXPECT_EQ(train_once(vanilla_, corpus_, TrainingSettings(parameters)).test.tokens, 3 * 12);
  EXPECT_GT(with.cpu_seconds, 0.0);
  EXPECT_LE(with.cpu_seconds, with.seconds * 1.05);
}

TEST_F(TrainingTest, DependsOnSeedsAndNothingElse) {
  const auto how = settings(20);
  const auto first = train_once(vanilla_, corpus_, how);
  torch::rand({7});  // LibTorch's global generator has moved
  expect_same_curve(first, train_once(vanilla_, corpus_, how));
  expect_same_curve(first, train_once(vanilla_, corpus_, how));
  EXPECT_NE(train_once(vanilla_, corpus_, how, {}, 1).curve.back().valid.nll,
            first.curve.back().valid.nll);
  EXPECT_NE(train_once(vanilla_, corpus_, how, {}, 0, 6).curve.back().valid.nll,
            first.curve.back().valid.nll);
}

TEST_F(TrainingTest, StoppedAtAnyStepContinuesBitIdentically) {
  const auto how = settings(40, {10, 20});
  const auto whole = train_once(vanilla_, corpus_, how);
  TrainingContext context;
  context.checkpoint_folder = folder_;
  auto often = how;
  often.checkpoint_minutes = 1e-9;  // after every step
  // A process that dies leaves the last checkpoint: train a prefix by stopping from another
  // thread's point of view.
  for (int stops = 0; stops < 3; ++stops) {
    std::atomic<bool> done{false};
    std::thread stopper([&] {
      while (!done && !fs::exists(folder_ / "x_0.pt")) std::this_thread::yield();
      request_stop();
    });
    try {
      train_once(vanilla_, corpus_, often, context);
      ADD_FAILURE() << "was not stopped";
    } catch (const StopRequested&) {
    }
    done = true;
    stopper.join();
    request_stop(false);
    EXPECT_TRUE(fs::exists(folder_ / "x_0.pt"));
  }
  expect_same_curve(whole, train_once(vanilla_, corpus_, often, context));
  EXPECT_TRUE(fs::exists(folder_ / "x_0.pt")) << "until somebody has the result in safety";
}

class CheckpointTest : public TrainingTest {
 protected:
  CheckpointTest() { context_.checkpoint_folder = folder_; }

  /// Leaves the checkpoint of a training at its half.
  void train_half() {
    auto half = how_;
    half.steps = 10;
    half.checkpoints = {10};
    (void)train_once(vanilla_, corpus_, half, context_);
    fs::copy_file(file_, folder_ / "kept", fs::copy_options::overwrite_existing);
  }
  /// Continues with a file in the checkpoint's place. @return what is told about it.
  std::string continued_with(const std::string& bytes) {
    std::ofstream(file_, std::ios::binary) << bytes;
    ::testing::internal::CaptureStderr();
    expect_same_curve(whole_, train_once(vanilla_, corpus_, how_, context_));
    return ::testing::internal::GetCapturedStderr();
  }

  TrainingSettings how_ = settings(20, {10});
  TrainingContext context_;
  fs::path file_ = folder_ / "x_0.pt";
  TrainingResult whole_ = train_once(vanilla_, corpus_, how_);
};

TEST_F(CheckpointTest, AnyDamageStartsTheTrainingAgainAndIsTold) {
  train_half();
  const auto good = read_bytes(folder_ / "kept");
  EXPECT_EQ(continued_with(good), "") << "a whole one is continued from";
  for (std::size_t i = 1; i < 12; ++i) {
    auto damaged = good;
    auto& byte = damaged[i * damaged.size() / 12];
    byte = static_cast<char>(byte ^ 4);
    EXPECT_EQ(continued_with(damaged), "warning: " + file_.string() +
                                           ": its checksum does not fit: it is damaged, so that "
                                           "this training begins again\n");
  }
  EXPECT_NE(continued_with(good.substr(0, good.size() / 2)), "");
  for (const auto* other : {"", "half of a checkpoint", "PK\3\4 an archive of earlier versions"}) {
    EXPECT_NE(continued_with(other).find("it has no checksum"), std::string::npos) << other;
  }
}

TEST_F(CheckpointTest, WhatCannotBeReadIsTriedOnceMore) {
  train_half();
  // As a file on a network's disk that another machine is about to replace.
  const auto briefly_unreadable = [this](const std::function<void()>& then) {
    fs::remove(file_);
    fs::create_directory(file_);
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      fs::remove(file_);
      then();
    });
    const auto result = train_once(vanilla_, corpus_, how_, context_);
    other.join();
    return result;
  };
  expect_same_curve(whole_, briefly_unreadable([this] { fs::copy_file(folder_ / "kept", file_); }));
  expect_same_curve(whole_, briefly_unreadable([] {}));
  fs::remove(file_);
  fs::create_directory(file_);
  EXPECT_THROW((void)train_once(vanilla_, corpus_, how_, context_), MachineError);
}

TEST_F(CheckpointTest, OfAnotherTrainingIsNotContinuedFrom) {
  train_half();
  const auto good = read_bytes(folder_ / "kept");
  (void)train_once(vanilla_, corpus_, how_, context_, /*replicate=*/1);
  const auto other = read_bytes(folder_ / "x_1.pt");
  EXPECT_NE(continued_with(other).find("it is of another training"), std::string::npos);
  auto renamed = good;
  renamed.replace(renamed.find("x_0"), 3, "x_1");
  std::ofstream(folder_ / "x_1.pt", std::ios::binary) << renamed;
  EXPECT_THROW((void)read_checkpoint(folder_ / "x_1.pt", "x_1"), UnreadableCheckpoint)
      << "the checksum is of the name, too";
}

TEST_F(CheckpointTest, OfOtherShapesIsNotContinuedFrom) {
  auto wide = vanilla_;
  wide.width = 32;
  (void)train_once(wide, corpus_, how_, context_);
  ::testing::internal::CaptureStderr();
  expect_same_curve(whole_, train_once(vanilla_, corpus_, how_, context_));
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("must have"), std::string::npos);
}

TEST_F(CheckpointTest, WeightsAreReadIntoAModel) {
  const auto result = train_once(vanilla_, corpus_, how_, context_);
  const auto file = folder_ / "models" / "weights.pt";
  const auto digest = save_weights(file_, "x", 0, file);
  EXPECT_EQ(digest, sha256_file(file));
  nn::Transformer model(vanilla_, NumericalMode::exact);
  model.initialise(7, 0);  // of another seed
  load_weights(file, model, digest);
  EXPECT_THROW(load_weights(file, model, sha256("other weights")), UnreadableCheckpoint);
  const auto all = evenly_spaced(corpus_.valid.size(), 0);
  const auto scores = validate(model.array(), corpus_.valid, all, corpus_.special, 7, "cpu");
  EXPECT_NEAR(scores.front().nll, result.curve.back().valid.nll, 1e-9 * scores.front().nll);

  auto wide = vanilla_;
  wide.width = 32;
  nn::Transformer other(wide);
  const auto words = message_of<UnreadableCheckpoint>([&] { load_weights(file, other); });
  EXPECT_NE(words.find("embedding.weight has sizes"), std::string::npos) << words;
  write_durably(file, "no archive");
  EXPECT_THROW(load_weights(file, model), UnreadableCheckpoint);
}

TEST_F(CheckpointTest, WithoutRoomForOneTheMachineIsToBlame) {
  rlimit unlimited{};
  getrlimit(RLIMIT_FSIZE, &unlimited);
  testing::limit_file_size(10'000);
  const auto words =
      message_of<MachineError>([&] { (void)train_once(vanilla_, corpus_, how_, context_); });
  setrlimit(RLIMIT_FSIZE, &unlimited);
  EXPECT_EQ(words.find("no space left in " + folder_.string()), 0U) << words;
  fs::create_directory(file_);
  EXPECT_THROW((void)train_once(vanilla_, corpus_, how_, context_), MachineError);
  fs::remove(file_);
  expect_same_curve(whole_, train_once(vanilla_, corpus_, how_, context_));
}

TEST(ModelFailure, IsToldFromFaultsOfMemoryAndDevices) {
  const auto of = [](const auto& exception) { nn::of_model([&] { throw exception; }); };
  const auto by_torch = [](const std::string& text) {
    nn::of_model([&] { TORCH_CHECK(false, text); });
  };
  EXPECT_THROW(by_torch("mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)"),
               CandidateFailure);
  EXPECT_THROW(of(std::invalid_argument("heads must divide the width")), CandidateFailure);
  EXPECT_THROW(by_torch("CUDA out of memory. Tried to allocate 2.00 GiB"), DeviceOutOfMemory);
  EXPECT_THROW(of(std::runtime_error("softmax: CUDA error: out of memory")), DeviceOutOfMemory);
  EXPECT_THROW(by_torch("CUDA error: an illegal memory access was encountered"), MachineError);
  EXPECT_THROW(by_torch("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes"),
               std::bad_alloc);
  EXPECT_THROW(of(MemoryLimitExceeded("a tensor")), MemoryLimitExceeded);
  EXPECT_THROW(of(std::bad_alloc()), std::bad_alloc);
  EXPECT_THROW(of(StopRequested()), StopRequested);
  EXPECT_THROW(of(std::system_error(std::make_error_code(std::errc::io_error))), std::system_error);
  EXPECT_EQ(message_of<CandidateFailure>([&] { by_torch("shapes do not fit"); }),
            "shapes do not fit")
      << "without frames";
}

TEST_F(TrainingTest, DivergenceIsAStatus) {
  const auto result = train_once(vanilla_, corpus_, settings(120, {}, 1e30));
  EXPECT_EQ(result.status, Status::diverged);
  EXPECT_NE(result.reason.find("not finite"), std::string::npos) << result.reason;
}

TEST_F(TrainingTest, LackOfMemoryIsAStatusAndTheNextTrainingRuns) {
  TrainingContext context;
  context.memory_limit = 50'000;
  const auto result = train_once(vanilla_, corpus_, settings(3), context);
  EXPECT_EQ(result.status, Status::out_of_memory);
  EXPECT_NE(result.reason.find("memory limit of 49 KiB"), std::string::npos) << result.reason;
  EXPECT_EQ(train_once(vanilla_, corpus_, settings(3)).status, Status::ok);
}

TEST_F(TrainingTest, HopelessCandidatesStopEarly) {
  const auto limited = [&](double limit) {  // nats a token
    return train_once(vanilla_, corpus_, settings(30, {10, 20}), {}, 0, 5, {{10, limit}});
  };
  const auto result = limited(0.1);  // nobody is there by step 10
  EXPECT_EQ(result.status, Status::stopped_early);
  EXPECT_EQ(result.curve.back().step, 10);
  EXPECT_EQ(limited(100.0).status, Status::ok);
}

TEST_F(TrainingTest, RateFollowsTheSchedule) {
  Parameters parameters(training_settings());
  parameters.set("steps", std::int64_t{110});
  parameters.set("learning_rate", 0.5);
  parameters.set("warmup_steps", std::int64_t{10});
  EXPECT_DOUBLE_EQ(TrainingSettings(parameters).rate(5), 0.25);
  EXPECT_DOUBLE_EQ(TrainingSettings(parameters).rate(110), 0.5);
  parameters.set("schedule", std::string("cosine"));
  const TrainingSettings cosine(parameters);
  EXPECT_DOUBLE_EQ(cosine.rate(10), 0.5);
  EXPECT_DOUBLE_EQ(cosine.rate(11), 0.5);
  EXPECT_NEAR(cosine.rate(61), 0.25, 1e-12);
  // What torch.optim.lr_scheduler.CosineAnnealingLR(T_max=100) has in its last step.
  EXPECT_NEAR(cosine.rate(110), 1.2336e-4, 1e-8);
}

TEST_F(TrainingTest, EveryStepOfAScheduleHasARate) {
  Parameters parameters(training_settings());
  parameters.set("learning_rate", 0.5);
  parameters.set("warmup_steps", std::int64_t{0});
  for (const auto* schedule : {"constant", "cosine", "linear", "wsd"}) {
    parameters.set("schedule", std::string(schedule));
    for (const std::int64_t steps : {1, 2, 3, 50}) {
      parameters.set("steps", steps);
      const TrainingSettings settings(parameters);
      EXPECT_DOUBLE_EQ(settings.rate(1), 0.5) << schedule << steps;
      EXPECT_GT(settings.rate(steps), 0.0) << schedule << steps;
    }
  }
  parameters.set("steps", std::int64_t{100});
  EXPECT_DOUBLE_EQ(TrainingSettings(parameters).rate(81), 0.5);
  EXPECT_NEAR(TrainingSettings(parameters).rate(91), 0.25, 1e-12);
  parameters.set("schedule", std::string("linear"));
  EXPECT_NEAR(TrainingSettings(parameters).rate(61), 0.2, 1e-12);
}

TEST_F(TrainingTest, BatchesKnowTheReplicateAndNotWhatIsTrained) {
  // Two mechanisms of one replicate each make an order of their own, from the same three numbers.
  TrainingOrder one(corpus_.train, 8, 3, 2);
  TrainingOrder two(corpus_.train, 8, 3, 2);
  TrainingOrder other(corpus_.train, 8, 3, 1);
  for (const std::int64_t step : {0, 1, 7}) {
    EXPECT_TRUE(torch::equal(one.batch(step).input, two.batch(step).input)) << step;
    EXPECT_TRUE(torch::equal(one.batch(step).target, two.batch(step).target)) << step;
    EXPECT_FALSE(torch::equal(one.batch(step).input, other.batch(step).input)) << step;
  }
}

TEST_F(TrainingTest, EveryEpochShowsEveryWindowOnce) {
  TrainingOrder order(corpus_.train, 8, 3, 0);
  std::multiset<std::int64_t> first;
  std::vector<std::int64_t> sequence;
  for (std::int64_t step = 0; step < 10; ++step) {  // 2 epochs of 5 batches
    const auto batch = order.batch(step);
    ASSERT_EQ(batch.input.size(0), 8);
    for (std::int64_t row = 0; row < 8; ++row) {
      sequence.push_back(batch.input[row].sum().item<std::int64_t>() * 100 +
                         batch.input[row][0].item<std::int64_t>());
    }
  }
  const std::multiset<std::int64_t> one(sequence.begin(), sequence.begin() + 40);
  const std::multiset<std::int64_t> two(sequence.begin() + 40, sequence.end());
  EXPECT_EQ(one, two);
  EXPECT_FALSE(std::equal(sequence.begin(), sequence.begin() + 40, sequence.begin() + 40));
  // Any step can be asked for again: nothing is drawn from a stream.
  EXPECT_TRUE(
      torch::equal(order.batch(2).input, TrainingOrder(corpus_.train, 8, 3, 0).batch(2).input));
}

TEST_F(TrainingTest, ValidationCountsWhatItSays) {
  nn::Transformer model(vanilla_);
  model.initialise(1, 0);
  SpecialTokens special;
  special.pad = 3;
  special.unknown = 4;
  const auto all = evenly_spaced(corpus_.valid.size(), 0);
  const auto whole = validate(model.array(), corpus_.valid, all, special, 100, "cpu").front();
  const auto parts = validate(model.array(), corpus_.valid, all, special, 7, "cpu").front();
  EXPECT_EQ(whole.tokens, 40 * 12);
  EXPECT_EQ(whole.batches, 1);
  EXPECT_EQ(parts.batches, 6);
  EXPECT_NEAR(whole.nll, parts.nll, 1e-3);
  EXPECT_NEAR(whole.published_perplexity(), whole.perplexity(), 1e-9);
  EXPECT_NEAR(whole.perplexity(), 11.0, 0.5) << "an untrained model is nearly uniform";
  EXPECT_GT(whole.pad_tokens, 0);
  EXPECT_GT(whole.unknown_tokens, 0);
  EXPECT_LT(whole.pad_tokens + whole.unknown_tokens, whole.tokens);
}

TEST(EvenlySpaced, ChoosesWindows) {
  EXPECT_EQ(evenly_spaced(10, 4), (std::vector<std::int64_t>{0, 2, 5, 7}));
  EXPECT_EQ(evenly_spaced(3, 3), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(evenly_spaced(3, 0), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(evenly_spaced(3, 7), (std::vector<std::int64_t>{0, 1, 2}));
}

/// The sums that a search's records have always held, bitwise: the sum of a model's batch by
/// itself, then one batch after the other in double precision.
TEST_F(TrainingTest, ValidationAddsUpBatchByBatch) {
  std::vector<Architecture> architectures(3, vanilla_);
  nn::TransformerArray models(architectures, NumericalMode::exact);
  models.initialise({{1, 0}, {2, 0}, {3, 0}});
  SpecialTokens special;
  special.pad = 3;
  auto windows = corpus_.valid;
  for (std::int64_t i = 0; i < windows.size() * windows.length; ++i) {
    windows.targets.push_back(static_cast<std::int32_t>(i % 5 == 0 ? kNotScored : i % 11));
  }
  const std::vector<std::int64_t> scored{1, 2, 5, 6, 9, 30, 31, 32};
  const auto ours = validate(models, windows, scored, special, 3, "cpu");
  const torch::NoGradGuard no_grad;
  std::vector<Scores> expected(3);
  for (std::size_t first = 0; first < scored.size(); first += 3) {
    const auto last = std::min(first + 3, scored.size());
    const auto batch = read_batch(windows,
                                  {scored.begin() + static_cast<std::ptrdiff_t>(first),
                                   scored.begin() + static_cast<std::ptrdiff_t>(last)},
                                  0);
    const auto stacked = [](const torch::Tensor& x) { return torch::stack({x, x, x}); };
    const auto tokens = models.scores(stacked(batch.input), stacked(batch.target));
    const auto target = batch.target.flatten();
    const auto asked = target.ge(0).sum().item<std::int64_t>();
    for (std::size_t r = 0; r < 3; ++r) {
      auto& scores = expected[r];
      const auto nll = tokens.nll[static_cast<std::int64_t>(r)];
      scores.pad_nll += (nll * (target == special.pad)).sum().item<double>();
      scores.pad_tokens += (target == special.pad).sum().item<std::int64_t>();
      scores.correct += tokens.correct[static_cast<std::int64_t>(r)].sum().item<std::int64_t>();
      scores.nll += nll.sum().item<double>();
      scores.tokens += asked;
      scores.batch_mean_nll += nll.sum().item<double>() / static_cast<double>(asked);
      ++scores.batches;
    }
  }
  for (std::size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(ours[r].nll, expected[r].nll);
    EXPECT_EQ(ours[r].tokens, expected[r].tokens);
    EXPECT_EQ(ours[r].correct, expected[r].correct);
    EXPECT_EQ(ours[r].pad_nll, expected[r].pad_nll);
    EXPECT_EQ(ours[r].pad_tokens, expected[r].pad_tokens);
    EXPECT_EQ(ours[r].unknown_nll, 0.0);
    EXPECT_EQ(ours[r].unknown_tokens, 0);
    EXPECT_EQ(ours[r].batch_mean_nll, expected[r].batch_mean_nll);
    EXPECT_EQ(ours[r].batches, expected[r].batches);
  }
  EXPECT_LT(ours[0].tokens, 8 * 12);
  EXPECT_NE(ours[0].nll, ours[1].nll);
}

/// The curve and the trained parameters, by name, of a training run with so many threads.
std::pair<TrainingResult, std::map<std::string, torch::Tensor>> trained(
    const std::string& mechanism, NumericalMode mode, int threads) {
  const TemporaryFolder folder;
  const auto corpus = test::counting_corpus(500, 64, 48);
  auto architecture = tiny(corpus, mechanism);
  architecture.width = 64;
  architecture.heads = 4;
  Parameters parameters(training_settings());
  parameters.set("steps", std::int64_t{6});
  parameters.set("batch_size", std::int64_t{16});
  parameters.set("checkpoints", std::vector<std::int64_t>{3});
  TrainingContext context;
  context.numerical_mode = mode;
  context.threads = threads;
  context.checkpoint_folder = folder.path();
  const TrainingJob job{.architecture = architecture,
                        .settings = TrainingSettings(parameters),
                        .run_seed = 5,
                        .checkpoint_name = "x"};
  TrainingResult result;
  // As workers do: the number of OpenMP threads is the thread's own.
  std::thread([&] { result = train({&job, 1}, corpus, context).front(); }).join();
  const auto file = folder.path() / "weights.pt";
  save_weights(folder.path() / "x_0.pt", "x", 0, file);
  torch::serialize::InputArchive archive;
  archive.load_from(file.string());
  std::map<std::string, torch::Tensor> weights;
  for (const auto& name : archive.keys()) archive.read(name, weights[name]);
  return {result, weights};
}

/// Tensors are large enough for LibTorch to divide them among threads.
TEST(Threads, DoNotChangeATrainingRunInModeExact) {
  for (const auto* mechanism :
       {"dot|softmax|none|fixed|bias|0.1", "additive|sparsemax|output_gate|learned|no_bias|0.2",
        "bilinear|entmax15|normed_highway|shifted_abs|no_bias|0"}) {
    for (const auto mode : {NumericalMode::exact, NumericalMode::fast}) {
      const auto [one, weights_of_one] = trained(mechanism, mode, 1);
      const auto [two, weights_of_two] = trained(mechanism, mode, 2);
      ASSERT_EQ(one.status, Status::ok) << one.reason;
      expect_same_curve(one, two);
      ASSERT_EQ(weights_of_one.size(), weights_of_two.size());
      EXPECT_GT(weights_of_one.size(), 10U);
      for (const auto& [name, tensor] : weights_of_one) {
        EXPECT_TRUE(tensor.equal(weights_of_two.at(name)))
            << mechanism << " " << to_string(mode) << " " << name;
      }
    }
  }
}

}  // namespace
}  // namespace nas
