// Training runs that pause at rungs.

#include "core/fault.hpp"
#include "prelude.hpp"
#include "unit/evaluator_fixture.hpp"
#include "unit/stepping_measurement.hpp"

namespace nas::testing {
namespace {

class RungTest : public EvaluatorTest {
 protected:
  std::shared_ptr<RecordingEvaluator> evaluator(Store& store,
                                                RecordingEvaluator::Options options = {}) {
    return std::make_shared<RecordingEvaluator>(
        stepping_, store,
        [set = fake_objectives()](Objective::Evaluations e) { return set.judge(e); }, options);
  }
  Task task(const std::string& name, std::int64_t until = 0) const {
    auto task = make_task(*stepping_, {name}, 0);
    task.until = until;
    return task;
  }
  /// Without what another process would measure otherwise.
  static std::string comparable(const Evaluation& evaluation) {
    return canonical_json(evaluation).dump() + evaluation.measured.at("train_seconds").dump();
  }

  std::shared_ptr<SteppingMeasurement> stepping_ = std::make_shared<SteppingMeasurement>();
  fs::path file_ = folder_ / "s.sqlite";
  const Texts names_{"a|a|a|0", "b|a|a|0", "c|a|a|0", "d|a|a|0"};
};

TEST_F(RungTest, TrainingGoesOnFromRungToRung) {
  Store store(file_);
  const auto evaluator = this->evaluator(store, {.workers = 2});
  std::vector<Task> first;
  for (const auto& name : names_) first.push_back(task(name, 10));
  for (const auto& answer : evaluator->evaluate(first)) {
    EXPECT_EQ(answer.status, Status::paused);
    EXPECT_EQ(answer.curve.size(), 1U);
  }
  EXPECT_EQ(stepping_->steps_, 40);
  EXPECT_EQ(store.partials().size(), 4U);
  EXPECT_TRUE(store.evaluations().empty());
  EXPECT_EQ(evaluator->evaluate({task(names_[1], 20), task(names_[3], 20)}).back().curve.size(),
            2U);
  EXPECT_EQ(stepping_->steps_, 60);
  EXPECT_EQ(store.find_partial(first[1].id)->curve.size(), 2U);
  EXPECT_EQ(evaluator->evaluate({task(names_[3])}).front().status, Status::ok);
  EXPECT_EQ(stepping_->steps_, 80);
  EXPECT_EQ(store.partials().size(), 3U);
  EXPECT_EQ(store.evaluations().size(), 1U);
}

TEST_F(RungTest, ALongerTrainingRunAnswersEarlierRungs) {
  std::string at_10, at_20;
  {
    Store store(folder_ / "straight.sqlite");
    const auto evaluator = this->evaluator(store);
    at_10 = comparable(evaluator->evaluate({task(names_[0], 10)}).front());
    at_20 = comparable(evaluator->evaluate({task(names_[0], 20)}).front());
  }
  const auto steps = stepping_->steps_;
  for (const std::int64_t before : {20, 0}) {
    const auto file = folder_ / ("after" + std::to_string(before));
    {
      Store store(file);
      (void)this->evaluator(store)->evaluate({task(names_[0], before)});
    }
    const auto taken = stepping_->steps_;
    Store store(file);
    const auto evaluator = this->evaluator(store);
    EXPECT_EQ(comparable(evaluator->evaluate({task(names_[0], 10)}).front()), at_10);
    EXPECT_EQ(comparable(evaluator->evaluate({task(names_[0], 20)}).front()), at_20);
    EXPECT_EQ(stepping_->steps_, taken) << "nothing is trained for that";
  }
  EXPECT_EQ(stepping_->steps_, steps + 20);
}

TEST_F(RungTest, WhatFailedLaterWasPausedBefore) {
  stepping_->fails_ = 'a';
  Store store(file_);
  const auto evaluator = this->evaluator(store);
  EXPECT_EQ(evaluator->evaluate({task(names_[0], 20)}).front().status, Status::diverged);
  EXPECT_EQ(store.evaluations().size(), 1U) << "it has ended";
  EXPECT_EQ(evaluator->evaluate({task(names_[0])}).front().status, Status::diverged);
  const auto again = evaluator->evaluate({task(names_[0], 10)}).front();
  EXPECT_EQ(again.status, Status::paused);
  EXPECT_EQ(again.reason, "");
  EXPECT_EQ(again.values.count("value"), 1U);
}

// Asks were answered by its failure, and are again where the search is repeated.
TEST_F(RungTest, WhatFailsAtARungHasNotComeToIt) {
  stepping_->on_measured_ = [](Evaluation& evaluation) {
    if (evaluation.curve.size() < 2) return;
    evaluation.status = Status::timed_out;
    evaluation.reason = "slow";
  };
  Store store(file_);
  EXPECT_EQ(evaluator(store)->evaluate({task(names_[0], 10)}).front().status, Status::paused);
  for (int process = 0; process < 2; ++process) {
    const auto answer = evaluator(store)->evaluate({task(names_[0], 20)}).front();
    EXPECT_EQ(answer.status, Status::timed_out) << process;
    EXPECT_EQ(answer.curve.size(), 1U);
  }
  EXPECT_EQ(evaluator(store)->evaluate({task(names_[0], 10)}).front().status, Status::paused);
}

TEST_F(RungTest, OfWhatWasMadeElsewhereTheStoreHasWhatItWouldHaveOfItsOwn) {
  Store elsewhere(folder_ / "elsewhere.sqlite");
  (void)evaluator(elsewhere)->evaluate({task(names_[0])});
  const auto steps = stepping_->steps_;
  Store store(file_);
  const auto evaluator = this->evaluator(
      store, {.recall = [&elsewhere](const std::string& id) { return elsewhere.find(id); }});
  for (const std::int64_t until : {10, 20}) {
    EXPECT_EQ(evaluator->evaluate({task(names_[0], until)}).front().status, Status::paused);
    EXPECT_TRUE(store.evaluations().empty());
    ASSERT_EQ(store.partials().size(), 1U);
    EXPECT_EQ(store.partials().front().curve.back().step, until);
  }
  EXPECT_EQ(evaluator->evaluate({task(names_[0])}).front().status, Status::ok);
  EXPECT_EQ(store.evaluations().size(), 1U);
  EXPECT_TRUE(store.partials().empty());
  EXPECT_EQ(stepping_->steps_, steps) << "nothing is trained again";
}

// Asks were answered by what it had come to, and the search is repeated by the same answers.
TEST_F(RungTest, WhatFailedWithoutACurveWasPausedBefore) {
  const auto ask = [this](Store& store, std::int64_t until) {
    return comparable(this->evaluator(store)->evaluate({task(names_[0], until)}).front());
  };
  for (const bool begins : {true, false}) {  // it fails while it trains, or before that
    Store store(folder_ / std::to_string(begins));
    const auto answered = ask(store, 20);
    const auto fail = [](const Task&) { throw CandidateFailure("no such operation"); };
    if (begins) {
      stepping_->on_measure_ = [&](int, const Task& task) { fail(task); };
    } else {
      stepping_->on_screen_ = [&](const Task& task, Evaluation&) { fail(task); };
    }
    (void)ask(store, 0);
    stepping_->on_measure_ = {};
    stepping_->on_screen_ = {};
    const auto failed = store.evaluations().front();
    EXPECT_EQ(failed.status, Status::failed);
    EXPECT_EQ(failed.reason, "no such operation");
    EXPECT_EQ(failed.measured.at("train_seconds"), 2.0) << "which it has taken";
    EXPECT_TRUE(store.partials().empty());
    EXPECT_EQ(ask(store, 20), answered);
  }
}

TEST_F(RungTest, WhatIsCheapIsMeasuredAgainAndTheLongestPartStays) {
  stepping_->expensive_ = false;
  Store store(file_, Store::Mode::write_cheap);
  const auto evaluator = this->evaluator(store);
  (void)evaluator->evaluate({task(names_[0], 20)});
  EXPECT_EQ(evaluator->evaluate({task(names_[0], 10)}).front().curve.size(), 1U);
  EXPECT_EQ(store.partials().front().curve.size(), 2U);
  (void)evaluator->evaluate({task(names_[0])});
  EXPECT_EQ(this->evaluator(store)->evaluate({task(names_[0], 20)}).front().status, Status::paused);
  EXPECT_TRUE(store.partials().empty());
  EXPECT_EQ(store.evaluations().front().status, Status::ok);
}

TEST_F(RungTest, ACandidateThatIsPausedIsJudgedSo) {
  Store store(file_);
  const auto answer = this->evaluator(store)->evaluate({task(names_[0], 10)}).front();
  const auto judgement = fake_objectives().judge(std::vector<const Evaluation*>{&answer});
  EXPECT_EQ(judgement.status, Status::paused);
  EXPECT_EQ(judgement.fitness.front(), answer.values.at("value"));
}

TEST_F(RungTest, TheBudgetOfStepsCutsTheLastBatchWhateverTheWorkers) {
  stepping_->fails_ = 'b';  // after 10 steps
  std::string expected;
  for (const int workers : {1, 3}) {
    Store store(folder_ / ("w" + std::to_string(workers)));
    const auto evaluator =
        this->evaluator(store, {.workers = workers, .budget = {.train_steps = 100}});
    const auto ask = [&](const std::vector<std::vector<double>>& vectors) {
      std::vector<Genotype> batch;
      for (const auto& vector : vectors) batch.push_back(FakeMeasurement::space().decode(vector));
      return evaluator->ask(batch).size();
    };
    EXPECT_EQ(ask({{0, 1, 0, 0}, {0, 0, 0, 0}}), 2U);  // 10 and 40 steps
    EXPECT_EQ(ask({{0, 2, 0, 0}, {0, 3, 0, 0}}), 1U);
    EXPECT_EQ(evaluator->spent(), "100 training steps");
    const auto asks = EvaluatorTest::comparable(store);
    if (expected.empty()) expected = asks;
    EXPECT_EQ(asks, expected);
  }
}

}  // namespace
}  // namespace nas::testing
