#include "evaluation/at_work.hpp"

#include <csignal>

#include <unistd.h>

#include "prelude.hpp"
#include "unit/evaluator_fixture.hpp"
#include "unit/forked.hpp"
#include "unit/forked_search.hpp"
#include "unit/shuffled_executor.hpp"

namespace nas::testing {
namespace {

const std::vector<std::vector<double>> kTwo{{0.1, 3, 0, 0}, {0.1, 2, 0, 0}};

using AtWorkTest = EvaluatorTest;

TEST_F(AtWorkTest, AsksAreCommittedBeforeTheyAreAnsweredAndAreNoAsksOfTheRecord) {
  const Run run(folder_ / "s.sqlite");
  std::vector<nlohmann::json> asking;
  std::vector<std::size_t> recorded;
  run.fake->on_measure_ = [&](int, const Task&) {
    asking.push_back(run.store.meta("asking").value_or(nullptr));
    recorded.push_back(run.store.asks().size());
  };
  run.ask(kTwo);
  ASSERT_THAT(asking, SizeIs(2));
  EXPECT_EQ(recorded, (std::vector<std::size_t>{0, 1}));
  const auto& asks = asking[0].at("asks");
  ASSERT_THAT(asks, SizeIs(2));
  EXPECT_EQ(asking[0].at("batch"), 0);
  EXPECT_EQ(asks[1].at("number"), 1);
  EXPECT_EQ(asks[1].at("candidate"), "c|a|a|0.1");
  EXPECT_EQ(asks[1].at("genotype"), run.store.asks()[1].genotype);
  EXPECT_EQ(asks[1].at("evaluations"), run.store.asks()[1].evaluations);
}

TEST_F(AtWorkTest, SaysWhatIsMeasuredAndHowFarItIs) {
  nlohmann::json work;
  {
    const Run run(folder_ / "s.sqlite", {.stage = "re-test"});
    run.fake->on_measure_ = [&](int number, const Task&) {
      if (number == 2) work = run.store.meta("at_work").value_or(nullptr);
    };
    run.ask(kTwo);
  }
  EXPECT_EQ(work.at("stage"), "re-test");
  EXPECT_EQ(work.at("workers"), 1);
  const Store store(folder_ / "s.sqlite", Store::Mode::read_only);
  EXPECT_TRUE(store.meta("asking").value().is_null()) << "nobody works on it any more";
  EXPECT_TRUE(store.meta("at_work").value().is_null());
}

TEST_F(AtWorkTest, CountsWhoMeasuresAndNoThreadsOfThisProcess) {
  class Five final : public ShuffledExecutor {
   public:
    using ShuffledExecutor::ShuffledExecutor;
    [[nodiscard]] int workers() const override { return 5; }
  };
  const auto executor = std::make_shared<Five>(2, 1);
  const Run run(folder_ / "s.sqlite", {.workers = 7, .executor = executor});
  executor->measurement = run.fake.get();
  nlohmann::json work;
  run.fake->on_measure_ = [&](int number, const Task&) {
    if (number == 2) work = run.store.meta("at_work").value_or(nullptr);
  };
  run.ask(kTwo);
  EXPECT_EQ(work.at("workers"), 5);
}

TEST_F(AtWorkTest, ArraysAdvanceSplitAndFinish) {
  Store store(folder_ / "s.sqlite");
  std::vector<Evaluation> evaluations(3);
  for (int i = 0; i < 3; ++i) evaluations[static_cast<std::size_t>(i)].id = std::to_string(i);
  const auto members = [&](std::initializer_list<std::size_t> places) {
    std::vector<const Evaluation*> found;
    for (const auto i : places) found.push_back(&evaluations[i]);
    return found;
  };
  AtWork work(store, "search", 2);
  const auto arrays = [&] {
    work.asked(0, nlohmann::json::array());  // a change that is written
    return store.meta("at_work")->at("arrays");
  };
  work.submitted(4);
  work.started(members({0, 1, 2}));
  work.advanced(members({0, 1, 2}), {.step = 1, .steps = 500});
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  work.advanced(members({0, 1, 2}), {.step = 2, .steps = 500, .loss = unknown});
  for (int step = 3; step < 400; ++step) {
    work.advanced(members({0, 1, 2}), {.step = step, .steps = 500, .loss = 1.0 / step});
  }
  auto one = arrays();
  ASSERT_THAT(one, SizeIs(1));
  EXPECT_THAT(one[0].at("trainings"), SizeIs(3));
  EXPECT_EQ(one[0].at("step"), 399);
  EXPECT_EQ(store.meta("at_work")->at("waiting"), 1);
  const auto& curve = one[0].at("curve");
  EXPECT_LE(curve.size(), 128U);
  EXPECT_GE(curve.size(), 64U);
  EXPECT_EQ(curve.back()[0], 399) << "the latest is never thinned out";

  work.advanced(members({0, 1}), {.step = 10, .steps = 500, .loss = 2.0});
  EXPECT_THAT(arrays(), SizeIs(2)) << "an array that did not fit in memory";
  work.advanced(members({0, 1}), {.step = 20, .steps = 500, .loss = 2.0, .worker = "node3:17"});
  const auto two = arrays();
  EXPECT_EQ(two.back().at("worker"), "node3:17");
  EXPECT_FALSE(two.front().contains("worker")) << "it is this process";
  work.finished({evaluations[0], evaluations[2]});
  one = arrays();
  ASSERT_THAT(one, SizeIs(1));
  EXPECT_EQ(one[0].at("trainings")[0].at("evaluation"), "1");
  work.finished({evaluations[1]});
  EXPECT_THAT(arrays(), IsEmpty());
}

TEST_F(AtWorkTest, WritesNoOftenerThanReadersNeed) {
  Store store(folder_ / "s.sqlite");
  AtWork work(store, "search", 1);
  int changes = 0;
  nlohmann::json last;
  for (int i = 0; i < 1000; ++i) {
    work.asked(i, nlohmann::json::array());
    auto now = store.meta("asking").value();
    changes += now == last ? 0 : 1;
    last = std::move(now);
  }
  EXPECT_GE(changes, 8);
  EXPECT_LT(changes, 100) << "1000 changes in moments";
}

TEST_F(AtWorkTest, WhatAKilledProcessLeftChangesNoResult) {
  const auto file = folder_ / "killed.sqlite";
  EXPECT_EQ(in_child([&] {
              const Run run(file);
              run.fake->on_measure_ = [](int number, const Task&) {
                if (number == 3) raise(SIGKILL);
              };
              run.search();
              return 1;
            }),
            128 + SIGKILL);
  {
    const Store store(file, Store::Mode::read_only);
    EXPECT_TRUE(store.meta("asking")->is_object());
    EXPECT_THAT(store.asks(), SizeIs(2));
  }
  const Run run(file);
  run.search();
  EXPECT_EQ(comparable(run.store), uninterrupted());
}

}  // namespace
}  // namespace nas::testing
