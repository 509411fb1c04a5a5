// Tasks that are measured together.

#include <span>

#include "core/fault.hpp"
#include "core/stop.hpp"
#include "prelude.hpp"
#include "unit/evaluator_fixture.hpp"

namespace nas::testing {
namespace {

TEST_F(EvaluatorTest, ArraysAndWorkersChangeNothingButMeasuredFields) {
  const auto whole = uninterrupted();
  for (const int workers : {1, 2}) {
    for (const std::int64_t width : {1, 3, 8}) {
      const auto name = std::to_string(workers) + " " + std::to_string(width);
      const Run run(folder_ / (name + ".sqlite"), {.workers = workers});
      run.fake->array_width_ = width;
      run.search();
      EXPECT_EQ(comparable(run.store), whole) << name;
      const auto widest = *std::max_element(run.fake->arrays_.begin(), run.fake->arrays_.end());
      EXPECT_EQ(widest > 1, width > 1) << name;
      EXPECT_LE(widest, static_cast<std::size_t>(width)) << name;
    }
  }
}

TEST_F(EvaluatorTest, WhichTasksAreAlikeChangesNothingEither) {
  const auto whole = uninterrupted();
  for (const int workers : {1, 2}) {
    const Run run(folder_ / (std::to_string(workers) + ".sqlite"), {.workers = workers});
    run.fake->array_width_ = 3;
    run.fake->kind_ = [](const Task& task) { return task.candidate.name[2]; };
    run.fake->on_array_ = [](std::span<const Assignment> array) {
      for (const auto& member : array) {
        EXPECT_EQ(member.task.candidate.name[2], array.front().task.candidate.name[2]);
      }
    };
    run.search();
    EXPECT_EQ(comparable(run.store), whole) << workers;
    EXPECT_GT(*std::max_element(run.fake->arrays_.begin(), run.fake->arrays_.end()), 1U);
  }
}

TEST_F(EvaluatorTest, EachMemberOfAnArrayIsChargedItsOwnShare) {
  for (const int workers : {1, 2}) {
    for (const std::int64_t width : {1, 3, 8}) {
      const auto name = std::to_string(workers) + " " + std::to_string(width);
      const Run run(folder_ / (name + ".sqlite"),  // each takes 2
                    {.workers = workers, .budget = {.train_seconds = 8.0}});
      run.fake->array_width_ = width;
      EXPECT_EQ(run.ask(kFour).size(), 4U) << name;
      EXPECT_EQ(run.evaluator->spent(), "8 s of training") << name;
      EXPECT_EQ(run.evaluator->num_evaluated(), 4) << name;
      EXPECT_EQ(run.fake->measured_, 4) << name;
    }
  }
}

TEST_F(EvaluatorTest, TasksAreDividedEvenlyInOrderOfTheirCost) {
  const Run run(folder_ / "s.sqlite");
  run.fake->array_width_ = 3;
  Texts members;
  run.fake->on_array_ = [&](std::span<const Assignment> array) {
    members.emplace_back();
    for (const auto& member : array) members.back() += member.task.candidate.name[0];
  };
  run.ask({kFour[2], kFour[0], kFour[3], kFour[1]});
  EXPECT_THAT(members, ElementsAre("dc", "ba"));
  for (const auto& evaluation : run.store.evaluations()) {
    EXPECT_EQ(evaluation.measured.at("array"), 2);
  }
}

TEST_F(EvaluatorTest, ReplicatesOfACandidateShareAnArray) {
  const Run run(folder_ / "s.sqlite", {.replicates = 3});
  run.fake->array_width_ = 3;
  run.fake->on_array_ = [&](std::span<const Assignment> array) {
    EXPECT_EQ(array.size(), 3U);
    for (const auto& member : array) {
      EXPECT_EQ(member.task.candidate.name, array.front().task.candidate.name);
    }
  };
  run.ask(kFour);
  EXPECT_EQ(run.fake->arrays_.size(), 4U);
}

TEST_F(EvaluatorTest, OnlyTasksThatWaitForAWorkerMakeArrays) {
  const Run run(folder_ / "s.sqlite", {.workers = 4});
  run.fake->array_width_ = 8;
  run.ask(kFour);
  EXPECT_THAT(run.fake->arrays_, ElementsAre(1U, 1U, 1U, 1U));
  EXPECT_EQ(run.fake->widths_asked_, 0) << "finding out may take a while";
  EXPECT_FALSE(run.store.evaluations().front().measured.contains("array"));
}

TEST_F(EvaluatorTest, AFailureTakesNoMateAlong) {
  const Run run(folder_ / "s.sqlite");
  run.fake->array_width_ = 4;
  run.fake->on_array_ = [](std::span<const Assignment> array) {
    if (array.size() > 1) array.back().evaluation.values["half done"] = 1;
  };
  run.fake->on_measure_ = [](int, const Task& task) {
    if (task.candidate.name[0] == 'b') throw CandidateFailure("broken tensor");
  };
  EXPECT_THAT(run.ask(kFour), ElementsAre(FakeMeasurement::value("d|a|a|0", 0),
                                          FakeMeasurement::value("c|a|a|0", 0), 1000.0,
                                          FakeMeasurement::value("a|a|a|0", 0)));
  EXPECT_THAT(run.fake->arrays_, ElementsAre(4U, 1U, 1U, 1U, 1U));
  for (const auto& evaluation : run.store.evaluations()) {
    EXPECT_EQ(evaluation.reason, evaluation.candidate[0] == 'b' ? "broken tensor" : "");
    EXPECT_FALSE(evaluation.values.contains("half done"));
    EXPECT_FALSE(evaluation.measured.contains("array"));
    EXPECT_EQ(evaluation.measured.at("array_failure"), "broken tensor");
  }
}

TEST_F(EvaluatorTest, AnArrayThatDoesNotFitIsHalved) {
  using Array = std::span<const Assignment>;
  const std::function<void(Array)> ways[] = {[](Array) { throw MemoryLimitExceeded("too big"); },
                                             [](Array) { throw DeviceOutOfMemory("full"); },
                                             [](Array array) {
                                               for (const auto& member : array)
                                                 member.evaluation.status = Status::out_of_memory;
                                             }};
  int number = 0;
  for (const auto& does_not_fit : ways) {
    const Run run(folder_ / (std::to_string(++number) + ".sqlite"));
    run.fake->array_width_ = 8;
    run.fake->after_array_ = [&](Array array) {
      const bool alone_too_big = array.front().task.candidate.name[0] == 'd';
      if (array.size() > 2 || alone_too_big) does_not_fit(array);
    };
    const auto values = run.ask({kFour[0], kFour[1], kFour[2], kFour[3], {1, 1, 0, 0}});
    EXPECT_THAT(values, ElementsAre(1000.0, FakeMeasurement::value("c|a|a|0", 0),
                                    FakeMeasurement::value("b|a|a|0", 0),
                                    FakeMeasurement::value("a|a|a|0", 0),
                                    FakeMeasurement::value("b|a|a|1", 0)));
    // Too little memory of a device for one alone is believed once nobody else is at work.
    std::vector<std::size_t> tried{5, 3, 2, 1, 1, 1, 2};
    if (number == 2) tried.push_back(1);
    EXPECT_EQ(run.fake->arrays_, tried) << number;
    for (const auto& evaluation : run.store.evaluations()) {
      EXPECT_EQ(evaluation.status == Status::out_of_memory, evaluation.candidate[0] == 'd');
    }
  }
}

TEST_F(EvaluatorTest, AStoppedArrayIsNotMeasuredInParts) {
  const Run run(folder_ / "s.sqlite");
  run.fake->array_width_ = 2;
  run.fake->on_measure_ = [](int number, const Task&) {
    if (number == 3) throw StopRequested();
  };
  EXPECT_THROW(run.ask(kFour), StopRequested);
  EXPECT_EQ(run.fake->measured_, 3);
  EXPECT_EQ(run.store.evaluations().size(), 2U) << "the array before it is kept";
}

TEST_F(EvaluatorTest, HowFarAnArrayIsCanBeHeard) {
  std::vector<Progress> heard;
  Texts candidates;
  const Run run(
      folder_ / "s.sqlite", {.on_progress = [&](const Progress& progress) {
        if (progress.kind != Progress::Kind::evaluation_advanced) return;
        heard.push_back(progress);
        candidates.push_back(progress.evaluation->candidate + " to " + progress.last->candidate);
      }});
  run.fake->array_width_ = 4;
  run.fake->on_array_ = [&](std::span<const Assignment> array) {
    run.fake->tell(array, {.step = 100, .steps = 400, .loss = 5.1});
  };
  run.ask(kFour);
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(candidates.front(), "d|a|a|0 to a|a|a|0");
  EXPECT_EQ(heard.front().advance.step, 100);
  EXPECT_EQ(heard.front().advance.steps, 400);
  EXPECT_EQ(heard.front().advance.loss, 5.1);
  EXPECT_EQ(heard.front().asked, 4);
  run.fake->tell({}, {});  // after the batch nobody listens
  EXPECT_EQ(heard.size(), 1U);
}

TEST_F(EvaluatorTest, EveryMemberOfAnArrayIsShown) {
  std::string seen;
  const Run run(folder_ / "s.sqlite", {.on_progress = [&](const Progress& progress) {
                  if (progress.evaluation == nullptr) return;
                  const bool started = progress.kind == Progress::Kind::evaluation_started;
                  seen += (started ? "<" : ">") + progress.evaluation->candidate.substr(0, 1);
                  if (!started) seen += std::to_string(progress.trained);
                }});
  run.fake->array_width_ = 2;
  run.ask(kFour);
  EXPECT_EQ(seen, "<d<c>d1>c2<b<a>b3>a4");
}

}  // namespace
}  // namespace nas::testing
