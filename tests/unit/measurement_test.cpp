#include "evaluation/measurement.hpp"

#include "core/error.hpp"
#include "fake_measurement.hpp"
#include "prelude.hpp"

namespace nas::testing {
namespace {

using ::testing::ThrowsMessage;

class TaskJson : public ::testing::Test {
 protected:
  TaskJson() : json_(task_json(make_task(fake_, {"a|b|c|0.5"}, 3))) {}

  void expect_refused(const std::string& words) const {
    EXPECT_THAT([&] { (void)read_task(json_, fake_); },
                ThrowsMessage<InputError>(HasSubstr(words)));
  }

  FakeMeasurement fake_;
  nlohmann::json json_;
};

TEST_F(TaskJson, ReadsBackEqual) {
  const auto task = read_task(nlohmann::json::parse(json_.dump()), fake_);
  EXPECT_EQ(task.candidate.name, "a|b|c|0.5");
  EXPECT_EQ(task.replicate, 3);
  EXPECT_EQ(task_json(task), json_);
}

TEST_F(TaskJson, WhatWouldBeMeasuredOtherwiseIsRefused) {
  fake_.version_ = 2;
  expect_refused(R"(identity.fake = 1, must be 2)");
}

TEST_F(TaskJson, WhatIsNotOfHereIsRefused) {
  json_["identity"]["corpus"] = "brown";
  expect_refused(R"(identity.corpus = "brown", must be null)");
}

TEST_F(TaskJson, AChangedTaskIsRefused) {
  json_["replicate"] = 4;
  expect_refused("identity.replicate = 3, must be 4");
  json_["identity"]["replicate"] = 4;
  expect_refused("id = ");
}

TEST_F(TaskJson, ATaskSaysWhereItPauses) {
  class Stepping final : public FakeMeasurement {
    std::vector<std::int64_t> rungs() const override { return {10, 40}; }
  } stepping;
  json_["until"] = 10;
  EXPECT_EQ(read_task(json_, stepping).until, 10);
  EXPECT_EQ(task_json(read_task(json_, stepping)), json_);
  expect_refused("until = 10, must be []");
  json_["until"] = 11;
  EXPECT_THAT([&] { (void)read_task(json_, stepping); },
              ThrowsMessage<InputError>(HasSubstr("until = 11, must be [10,40]")));
}

TEST_F(TaskJson, ATaskSaysHowItIsTrained) {
  auto task = make_task(fake_, {"a|b|c|0.5"}, 0);
  task.identity["training"] = {{"steps", 7}};
  json_ = task_json(task);
  expect_refused("id = ");  // it was not hashed with it
}

TEST(EvaluationJson, ReadsBackEqual) {
  Evaluation evaluation;
  evaluation.id = "i";
  evaluation.candidate = "c";
  evaluation.replicate = 5;
  evaluation.identity = {{"seed", 7}};
  evaluation.status = Status::stopped_early;
  evaluation.reason = "above";
  CurvePoint point;
  point.step = 20;
  point.train_nll = 0.1;
  point.valid.nll = std::numeric_limits<double>::infinity();
  point.valid.tokens = 3;
  point.seconds = 1.5;
  evaluation.curve = {point, point};
  evaluation.values = {{"perplexity", 12.25}, {"bits", std::numeric_limits<double>::quiet_NaN()}};
  evaluation.measured = {{"train_seconds", 2.5}};
  const nlohmann::json json = evaluation;
  const auto again = nlohmann::json::parse(json.dump()).get<Evaluation>();
  EXPECT_EQ(nlohmann::json(again), json);
  EXPECT_EQ(again.status, Status::stopped_early);
  EXPECT_EQ(again.curve[1].valid.nll, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(again.values.at("bits")));
  EXPECT_EQ(again.measured, evaluation.measured);
}

}  // namespace
}  // namespace nas::testing
