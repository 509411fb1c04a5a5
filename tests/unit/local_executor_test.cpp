#include "evaluation/local_executor.hpp"

#include <new>

#include "core/error.hpp"
#include "core/stop.hpp"
#include "fake_measurement.hpp"
#include "prelude.hpp"

namespace nas::testing {
namespace {

using ::testing::UnorderedElementsAre;
using Kind = Executor::Event::Kind;

class LocalExecutorTest : public ::testing::TestWithParam<bool> {
 protected:
  LocalExecutorTest() { fake_.expensive_ = GetParam(); }

  void submit(Executor& executor, const std::string& letters) {
    for (const char letter : letters) {
      auto task = make_task(fake_, {std::string(1, letter) + "|a|a|0.5"}, 0);
      Evaluation begun;
      begun.id = task.id;
      begun.candidate = task.candidate.name;
      begun.measured = nlohmann::json::object();
      letters_[task.id] = std::string(1, letter);
      executor.submit(std::move(task), std::move(begun));
    }
  }
  std::string told(const Executor::Event& event) {
    std::string text = event.kind == Kind::started ? "+" : event.kind == Kind::finished ? "-" : "~";
    for (const auto& id : event.ids) text += letters_.at(id);
    return text;
  }
  /// All that happens from now on: "+a" began, "-a" finished.
  Texts rest(Executor& executor) {
    Texts events;
    while (const auto event = executor.next()) {
      EXPECT_EQ(event->evaluations.size(), event->kind == Kind::finished ? event->ids.size() : 0U);
      events.push_back(told(*event));
    }
    return events;
  }

  FakeMeasurement fake_;
  std::map<std::string, std::string> letters_;
};

INSTANTIATE_TEST_SUITE_P(, LocalExecutorTest, ::testing::Bool(), [](const auto& expensive) {
  return expensive.param ? "OnThreads" : "OnTheThreadThatWaits";
});

TEST_P(LocalExecutorTest, OneWorkerDoesOneAfterTheOther) {
  const auto executor = local_executor(fake_, 1);
  EXPECT_EQ(executor->next(), std::nullopt);
  submit(*executor, "dba");
  EXPECT_THAT(rest(*executor), ElementsAre("+d", "-d", "+b", "-b", "+a", "-a"));
  EXPECT_EQ(executor->next(), std::nullopt);
  submit(*executor, "c");
  EXPECT_THAT(rest(*executor), ElementsAre("+c", "-c")) << "it goes on when there is work again";
}

TEST_P(LocalExecutorTest, NothingStartsWhileAResultIsLookedAt) {
  const auto executor = local_executor(fake_, 1);
  submit(*executor, "dba");
  EXPECT_EQ(told(*executor->next()), "+d");
  EXPECT_EQ(told(*executor->next()), "-d");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(fake_.measured_, 1);
  executor->withdraw();
  EXPECT_THAT(rest(*executor), ElementsAre());
  EXPECT_EQ(fake_.measured_, 1);
}

TEST_P(LocalExecutorTest, WhatEndsItIsThrownAfterAllThatHappened) {
  const auto executor = local_executor(fake_, 1);
  fake_.on_measure_ = [](int, const Task& task) {
    if (task.candidate.name[0] == 'b') throw MachineError("no space left");
  };
  submit(*executor, "dba");
  EXPECT_EQ(told(*executor->next()), "+d");
  EXPECT_EQ(told(*executor->next()), "-d");
  EXPECT_EQ(told(*executor->next()), "+b");
  EXPECT_THROW((void)executor->next(), MachineError);
  EXPECT_FALSE(stop_requested()) << "the others' stop ends with it";
  executor->abandon();
  EXPECT_EQ(executor->next(), std::nullopt) << "what waited is forgotten";
  submit(*executor, "a");
  EXPECT_THAT(rest(*executor), ElementsAre("+a", "-a"));
}

TEST_P(LocalExecutorTest, ArraysAreOfTasksThatAreAlike) {
  fake_.kind_ = [](const Task& task) {
    return std::string("ae").find(task.candidate.name[0]) == std::string::npos ? 'c' : 'v';
  };
  fake_.array_width_ = 2;
  const auto executor = local_executor(fake_, 1);
  submit(*executor, "abcdef");
  EXPECT_THAT(rest(*executor), ElementsAre("+ae", "-ae", "+bc", "-bc", "+df", "-df"));
  submit(*executor, "fcebd");
  EXPECT_THAT(rest(*executor), ElementsAre("+fc", "-fc", "+e", "-e", "+bd", "-bd"));
  fake_.array_width_ = 8;
  submit(*executor, "abcdef");
  EXPECT_THAT(rest(*executor), ElementsAre("+ae", "-ae", "+bcdf", "-bcdf"));
}

TEST(LocalExecutorThreads, AGroupHasItsShareOfTheArraysOfAllWorkers) {
  FakeMeasurement fake;
  fake.kind_ = [](const Task& task) { return task.candidate.name[0]; };
  fake.array_width_ = 8;
  const auto executor = local_executor(fake, 2);
  std::int64_t replicate = 0;
  for (const char letter : std::string("abaaaaaa")) {
    executor->submit(make_task(fake, {std::string(1, letter) + "|a|a|0.5"}, replicate++), {});
  }
  while (executor->next()) {
  }
  EXPECT_THAT(fake.arrays_, UnorderedElementsAre(4U, 3U, 1U));
}

/// A task with its evaluation, as it begins.
void submit_one(Executor& executor, const FakeMeasurement& fake, const std::string& letter,
                std::int64_t replicate = 0) {
  auto task = make_task(fake, {letter + "|a|a|0.5"}, replicate);
  Evaluation begun;
  begun.id = task.id;
  begun.measured = nlohmann::json::object();
  executor.submit(std::move(task), std::move(begun));
}

TEST(LocalExecutorThreads, SaysWhoTookHowLong) {
  FakeMeasurement fake;
  fake.sleep_ = std::chrono::milliseconds(20);
  const auto executor = local_executor(fake, 2);
  EXPECT_EQ(executor->workers(), 2);
  for (std::int64_t i = 0; i < 6; ++i) submit_one(*executor, fake, "a", i);
  std::map<int, double> seconds;
  while (const auto event = executor->next()) {
    for (const auto& evaluation : event->evaluations) {
      EXPECT_EQ(evaluation.measured.at("started").get<std::string>().size(), 20U);
      seconds[evaluation.measured.at("worker")] +=
          evaluation.measured.at("worker_seconds").get<double>();
    }
  }
  ASSERT_EQ(seconds.size(), 2U) << "each thread has a number";
  EXPECT_TRUE(seconds.contains(0) && seconds.contains(1));
  EXPECT_GE(seconds[0] + seconds[1], 0.12);

  fake.array_width_ = 3;
  const auto alone = local_executor(fake, 1);
  for (std::int64_t i = 0; i < 3; ++i) submit_one(*alone, fake, "b", i);
  double together = 0.0;
  const auto begun = std::chrono::steady_clock::now();
  while (const auto event = alone->next()) {
    for (const auto& evaluation : event->evaluations) {
      together += evaluation.measured.at("worker_seconds").get<double>();
    }
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
  EXPECT_LE(together, taken.count()) << "each has its share of the array's time";
}

TEST(LocalExecutorThreads, AFreeWorkerTakesWhatIsSubmittedWhileAnotherIsAtWork) {
  FakeMeasurement fake;
  std::atomic<int> others{0};
  fake.on_measure_ = [&others](int, const Task& task) {
    if (task.candidate.name[0] != 'a') {
      ++others;
      return;
    }
    for (int i = 0; others < 200 && i < 20000; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  const auto executor = local_executor(fake, 2);
  submit_one(*executor, fake, "a");
  EXPECT_EQ(executor->next()->kind, Kind::started);
  for (int i = 0; i < 200; ++i) {
    submit_one(*executor, fake, "b", i);
    EXPECT_EQ(executor->next()->kind, Kind::started);
    const auto event = executor->next();
    EXPECT_EQ(event->kind, Kind::finished);
  }
  EXPECT_EQ(executor->next()->kind, Kind::finished);
  EXPECT_EQ(executor->next(), std::nullopt);
}

TEST(LocalExecutorThreads, NothingStartsBesideWhatIsMeasuredAloneForItsMemory) {
  FakeMeasurement fake;
  std::atomic<int> at_work{0}, tries{0};
  std::atomic<bool> alone{true};
  fake.on_array_ = [&](std::span<const Assignment> array) {
    ++at_work;
    if (array.front().task.candidate.name[0] != 'a') return;
    if (++tries == 1) {
      --at_work;
      throw std::bad_alloc();
    }
    fake.tell(array, {});  // so that others may be submitted
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    alone = alone && at_work == 1;
  };
  fake.after_array_ = [&at_work](std::span<const Assignment>) { --at_work; };
  const auto executor = local_executor(fake, 2);
  submit_one(*executor, fake, "a");
  submit_one(*executor, fake, "b");
  int finished = 0;
  while (const auto event = executor->next()) {
    finished += event->kind == Kind::finished ? 1 : 0;
    if (event->kind != Kind::advanced) continue;
    submit_one(*executor, fake, "c");
    submit_one(*executor, fake, "d");
  }
  EXPECT_EQ(finished, 4);
  EXPECT_EQ(tries, 2);
  EXPECT_TRUE(alone);
}

TEST(LocalExecutorThreads, WhatIsToBeAloneIsMeasuredOnceMoreThen) {
  FakeMeasurement fake;
  std::atomic<int> at_work{0};
  std::atomic<bool> alone{true};
  fake.on_array_ = [&](std::span<const Assignment> array) {
    const auto& [task, evaluation] = array.front();
    if (task.candidate.name[0] == 'a' && !evaluation.measured.contains("alone")) {
      throw MeasureAlone();
    }
    ++at_work;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (task.candidate.name[0] == 'a') alone = alone && at_work == 1;
  };
  fake.after_array_ = [&at_work](std::span<const Assignment>) { --at_work; };
  const auto executor = local_executor(fake, 3);
  for (const auto* letter : {"a", "b", "c"}) submit_one(*executor, fake, letter);
  int finished = 0;
  int said = 0;
  while (const auto event = executor->next()) {
    for (const auto& evaluation : event->evaluations) {
      ++finished;
      EXPECT_EQ(evaluation.status, Status::ok);
      said += evaluation.measured.contains("alone") ? 1 : 0;
    }
  }
  EXPECT_EQ(finished, 3);
  EXPECT_EQ(said, 1);
  EXPECT_TRUE(alone);
}

TEST(LocalExecutorThreads, AbandonedWorkIsAskedToStop) {
  FakeMeasurement fake;
  std::atomic<bool> waits{false};
  fake.on_measure_ = [&](int, const Task&) {
    waits = true;
    while (!stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    throw StopRequested();
  };
  {
    const auto executor = local_executor(fake, 1);
    executor->submit(make_task(fake, {"a|a|a|0.5"}, 0), {});
    executor->submit(make_task(fake, {"b|a|a|0.5"}, 0), {});
    EXPECT_EQ(executor->next()->kind, Kind::started);
    while (!waits) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_FALSE(stop_requested());
  EXPECT_EQ(fake.measured_, 1);
}

}  // namespace
}  // namespace nas::testing
