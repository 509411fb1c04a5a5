// Steps that read everything in a device's memory, on emulated kernels, against steps that the host
// gives operation by operation to the same kernels.

#include "training/device_fed_steps.hpp"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "array_step.hpp"
#include "core/seed.hpp"
#include "emulated_device.hpp"
#include "evaluation/settings.hpp"
#include "kernels/emulation.hpp"
#include "small_corpus.hpp"
#include "training/trainer.hpp"

namespace nas {
namespace {

using nn::test::Emulation;

constexpr std::int64_t kBatch = 3;

/// Two models that differ in whatever models of an array may.
struct Array {
  explicit Array(const Windows& windows)
      : models({small("dot|softmax|output_gate|learned|bias|0.2"),
                small("additive|sparsemax|none|per_query|no_bias|0")},
               NumericalMode::exact),
        optimizer(begun(), 2, [this](const nn::Parameter& given) { return models.decays(given); }),
        losses(at::zeros({2}, at::TensorOptions(at::kDouble))) {
    for (std::int64_t r = 0; r < 2; ++r) {
      const auto run_seed = static_cast<std::uint64_t>(4 + r);
      courses.push_back({.order = TrainingOrder(windows, kBatch, run_seed, r),
                         .run_seed = run_seed,
                         .replicate = r,
                         .update = [r](std::int64_t step) {
                           const auto of_model = static_cast<double>(1 + r);
                           return ModelStep{
                               .step = step,
                               .learning_rate = 1e-2 * of_model / static_cast<double>(step),
                               .weight_decay = 0.1 * of_model,
                               .clip_norm = of_model};
                         }});
    }
  }

  static Architecture small(const std::string& mechanism) {
    auto architecture = nn::test::small(mechanism);
    architecture.width = 8;
    architecture.heads = 2;
    architecture.context = 6;
    return architecture;
  }

  const std::vector<nn::Parameter>& begun() {
    models.initialise({{4, 0}, {5, 1}});
    return models.parameters();
  }

  std::vector<Course*> all_courses() { return {&courses[0], &courses[1]}; }

  nn::TransformerArray models;
  Optimizer optimizer;
  torch::Tensor losses;
  std::vector<Course> courses;
};

/// One step by the host.
void host_step(Array& array) {
  nn::Pass pass{.training = true, .seeds = {}};
  std::vector<torch::Tensor> inputs;
  std::vector<torch::Tensor> targets;
  std::vector<ModelStep> updates;
  for (auto& course : array.courses) {
    pass.seeds.push_back(derive_seed(course.run_seed, course.replicate, "dropout", course.done));
    const auto batch = course.order.batch(course.done);
    inputs.push_back(batch.input);
    targets.push_back(batch.target);
    updates.push_back(course.update(++course.done));
  }
  const auto losses = array.models.loss(at::stack(inputs), at::stack(targets), pass);
  losses.sum().backward();
  array.optimizer.step(updates);
  array.losses += losses.detach();
}

void expect_equal(const Array& ours, const Array& expected) {
  EXPECT_TRUE(ours.losses.equal(expected.losses)) << ours.losses << expected.losses;
  for (std::size_t i = 0; i < expected.models.parameters().size(); ++i) {
    const auto& parameter = expected.models.parameters()[i];
    EXPECT_TRUE(ours.models.parameters()[i].tensor.equal(parameter.tensor)) << parameter.name;
  }
}

/// Windows that 3 a step do not divide, shifted in every epoch.
Windows some_windows(std::int64_t count) {
  auto windows = test::counting_corpus(29, 6, count).train;
  windows.shift = 4;
  return windows;
}

class DeviceFedSteps : public ::testing::Test {
 protected:
  void SetUp() override {
    nn::test::num_recordings = 0;
    nn::test::num_replays = 0;
    nn::test::can_record = true;
  }

  Emulation emulation_;
};

/// 34 steps in some portions, among them ones that a recording does not fit into.
/// @param again  whether they compute layers again for gradients, which the host's do not.
void expect_steps_of_the_host(const Windows& windows, bool again = false) {
  Array ours(windows);
  ours.models.recompute_layers(again);
  const auto steps = array_steps(ours.models, ours.optimizer, windows, {.batch = kBatch},
                                 ours.losses, /*record=*/true);
  const auto courses = ours.all_courses();
  Array expected(windows);
  for (const std::int64_t portion : {1, 4, 12, 2, 15}) {
    for (auto left = portion; left > 0;) left -= steps->take(courses, left);
    for (std::int64_t i = 0; i < portion; ++i) host_step(expected);
    ASSERT_EQ(ours.courses[1].done, expected.courses[1].done);
    expect_equal(ours, expected);
  }
}

TEST_F(DeviceFedSteps, AreThoseOfTheHost) {
  expect_steps_of_the_host(some_windows(32));  // an epoch ends within a table
  EXPECT_EQ(nn::test::num_recordings, 1);
  EXPECT_EQ(nn::test::num_replays, 2);  // ten of twelve, ten of fifteen
}

TEST_F(DeviceFedSteps, OfAFewWindowsAreRecordedByEpochs) {
  expect_steps_of_the_host(some_windows(7));
  EXPECT_EQ(nn::test::num_recordings, 1);
  EXPECT_EQ(nn::test::num_replays, 2 - 1 + 6 + 1 + 7);
}

TEST_F(DeviceFedSteps, ReadExplicitTargets) {
  auto windows = some_windows(32);
  windows.shift = 1;
  RandomEngine random(3);
  for (std::int64_t i = 0; i < 32 * 6; ++i) {
    windows.targets.push_back(i % 3 == 0 ? static_cast<std::int32_t>(kNotScored)
                                         : static_cast<std::int32_t>(random.below(29)));
  }
  expect_steps_of_the_host(windows);
}

TEST_F(DeviceFedSteps, ReadALastTargetOfTheirOwn) {
  auto windows = some_windows(32);
  windows.last_target = 28;
  expect_steps_of_the_host(windows);
}

TEST_F(DeviceFedSteps, AreGivenOneByOneWhereTheyCannotBeRecorded) {
  nn::test::can_record = false;
  ::testing::internal::CaptureStderr();
  expect_steps_of_the_host(some_windows(32));
  const auto warning = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(warning.find("steps cannot be recorded, every operation is started by the host: "
                         "this cannot be recorded"),
            std::string::npos)
      << warning;
  EXPECT_EQ(nn::test::num_replays, 0);
}

TEST_F(DeviceFedSteps, AreNotRecordedWhereLayersAreComputedAgain) {
  expect_steps_of_the_host(some_windows(32), /*again=*/true);
  EXPECT_EQ(nn::test::num_recordings, 0);
}

TEST_F(DeviceFedSteps, AreNotRecordedUnlessAsked) {
  const auto windows = some_windows(32);
  Array array(windows);
  const auto steps = array_steps(array.models, array.optimizer, windows, {.batch = kBatch},
                                 array.losses, /*record=*/false);
  const auto courses = array.all_courses();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(steps->take(courses, 100), 1);
  EXPECT_EQ(nn::test::num_recordings, 0);
}

/// A model may go on from a checkpoint where others begin.
TEST_F(DeviceFedSteps, GoOnFromAnywhere) {
  const auto windows = some_windows(32);
  Array ours(windows);
  Array expected(windows);
  ours.courses[1].done = expected.courses[1].done = 37;
  const auto steps =
      array_steps(ours.models, ours.optimizer, windows, {.batch = kBatch}, ours.losses, true);
  const auto courses = ours.all_courses();
  for (std::int64_t left = 25; left > 0;) left -= steps->take(courses, left);
  for (int i = 0; i < 25; ++i) host_step(expected);
  expect_equal(ours, expected);
  EXPECT_GT(nn::test::num_replays, 0);
}

/// Parts of a batch: recorded as they are taken, and the same models but for rounding.
TEST_F(DeviceFedSteps, OfPartsOfABatchAreThoseOfTheBatch) {
  const auto windows = some_windows(32);
  Array whole(windows);
  for (int i = 0; i < 30; ++i) host_step(whole);
  const auto trained = [&](bool record) {
    auto array = std::make_unique<Array>(windows);
    const auto steps = array_steps(array->models, array->optimizer, windows,
                                   {.batch = kBatch, .micro = 2}, array->losses, record);
    const auto courses = array->all_courses();
    for (std::int64_t left = 30; left > 0;) left -= steps->take(courses, left);
    return array;
  };
  const auto ours = trained(true);
  EXPECT_EQ(nn::test::num_recordings, 1);
  EXPECT_GT(nn::test::num_replays, 0);
  expect_equal(*ours, *trained(false));
  EXPECT_LT((ours->losses - whole.losses).abs().max().item<double>(), 1e-4);
  for (std::size_t i = 0; i < whole.models.parameters().size(); ++i) {
    const auto& parameter = whole.models.parameters()[i];
    const auto difference =
        (ours->models.parameters()[i].tensor - parameter.tensor).abs().max().item<double>();
    EXPECT_LT(difference, 1e-4) << parameter.name;
  }
}

/// Whole trainings: the array shrinks at a checkpoint, and steps are recorded anew.
TEST_F(DeviceFedSteps, TrainAnArrayThatShrinks) {
  const auto corpus = test::counting_corpus(29, 6, 32);
  const auto job_of = [&](const std::string& mechanism, std::int64_t steps) {
    Parameters given(training_settings());
    given.set("steps", steps);
    given.set("batch_size", kBatch);
    given.set("learning_rate", 1e-2);
    return TrainingJob{.architecture = Array::small(mechanism),
                       .settings = TrainingSettings(given)};
  };
  const std::vector jobs{job_of("dot|softmax|none|fixed|bias|0.1", 40),
                         job_of("dot|softmax|none|fixed|bias|0.1", 15)};
  const auto together = train(jobs, corpus, {});
  EXPECT_EQ(nn::test::num_recordings, 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto alone = train({&jobs[i], 1}, corpus, {});
    ASSERT_EQ(together[i].status, Status::ok) << together[i].reason;
    ASSERT_EQ(together[i].curve.size(), alone[0].curve.size());
    EXPECT_EQ(together[i].curve.back().train_nll, alone[0].curve.back().train_nll);
    EXPECT_EQ(together[i].curve.back().valid.nll, alone[0].curve.back().valid.nll);
  }
}

/// Gradients of the steps of a recording lie at different places: each step finds its own.
TEST_F(DeviceFedSteps, FindTheGradientsOfEachRecordedStep) {
  const auto options = at::TensorOptions(at::kDouble);
  const auto updated = [&](bool recorded) {
    const std::vector parameters{nn::Parameter{
        "matrix", at::ones({1, 5, 7}, options).requires_grad_(true), {0}, {}, nn::Decay::yes}};
    auto matrix = parameters.front().tensor;
    Optimizer optimizer(parameters, 1, [](const nn::Parameter&) { return true; });
    const nn::DeviceSteps numbers{.learning_rates = at::full({1}, 0.1, options),
                                  .weight_decays = at::full({1}, 0.2, options),
                                  .clip_norms = at::full({1}, 1.0, options),
                                  .done = at::zeros({1}, options.dtype(at::kLong))};
    const std::vector gradients{at::arange(35, options).view({1, 5, 7}),
                                at::arange(35, options).view({1, 5, 7}).neg().cos()};
    const auto steps = [&] {
      for (const auto& gradient : gradients) {
        matrix.mutable_grad() = gradient;
        optimizer.step(numbers);
      }
    };
    steps();  // before: the addresses that are there are others'
    if (recorded) {
      optimizer.begin_recording(2);
      cuda::emulation::begin_recording();
      steps();
      EXPECT_THROW(steps(), c10::Error) << "a third step of two";
      const auto replay = cuda::emulation::end_recording();
      optimizer.end_recording(/*succeeded=*/true);
      replay();
      replay();
    } else {
      steps();
      steps();
    }
    steps();
    return matrix.detach();
  };
  EXPECT_TRUE(updated(true).equal(updated(false)));
}

}  // namespace
}  // namespace nas
