#include "cli/multirun.hpp"

#include "core/error.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

using Words = Texts;

TEST(Multirun, EveryValueGoesWithEveryOther) {
  const auto parts = multirun({"algorithm.name=evo_ga,nsga2", "training.steps=50", "seed=1..3"});
  ASSERT_THAT(parts, SizeIs(6));
  EXPECT_EQ(parts[0].folder, "algorithm.name=evo_ga,seed=1");
  EXPECT_THAT(parts[0].overrides,
              ElementsAre("algorithm.name=evo_ga", "training.steps=50", "seed=1"));
  EXPECT_EQ(parts[1].folder, "algorithm.name=evo_ga,seed=2");
  EXPECT_EQ(parts[5].folder, "algorithm.name=nsga2,seed=3");
}

TEST(Multirun, WhatIsInBracketsIsOneValue) {
  const auto parts = multirun(
      {"objectives=[perplexity, flops]", "baseline=\"a,b\"", "space={gating: [none, highway]}"});
  ASSERT_THAT(parts, SizeIs(1));
  EXPECT_EQ(parts[0].folder, "");
  EXPECT_THAT(multirun({"objectives=[perplexity],[flops]"}), SizeIs(2));
}

TEST(Multirun, RangesAndNumbersMayBeListed) {
  const auto parts = multirun({"seed=7,1..2,x..3"});
  ASSERT_THAT(parts, SizeIs(4));
  EXPECT_THAT(parts[2].overrides, ElementsAre("seed=2"));
  EXPECT_THAT(parts[3].overrides, ElementsAre("seed=x..3")) << "no range: its reader refuses it";
}

TEST(Multirun, WhatIsNoListIsRefused) {
  const auto refusal = [](const std::string& word) {
    return message_of<InputError>([&] { (void)multirun({word}); });
  };
  EXPECT_EQ(refusal("seed=5..1"),
            "command line: seed = 5..1, must be FIRST..LAST, of at most 10,000 whole numbers");
  for (const auto* range : {"1..", "..3", "1.5..2", "1..99999999999999999999",
                            "9223372036854775806..9223372036854775807,1..",
                            "-9223372036854775808..9223372036854775807"}) {
    EXPECT_THAT(refusal(std::string("seed=") + range), HasSubstr("must be FIRST..LAST"));
  }
  EXPECT_EQ(multirun({"seed=9223372036854775806..9223372036854775807"}).size(), 2U);
  for (const std::string same : {"1.0", "+1", "0x1", "1e0", "01"}) {
    EXPECT_EQ(refusal("seed=1," + same),
              "command line: seed = 1," + same + ", must have " + same + " once: each is a run");
  }
  EXPECT_EQ(refusal("seed=1..3,02"),
            "command line: seed = 1..3,02, must have 02 once: each is a run");
  EXPECT_EQ(message_of<InputError>([] {
              (void)multirun({"seed=1..2", "seed=3"});
            }),
            "command line: seed is given twice, must be once with --multirun");
  EXPECT_EQ(message_of<InputError>([] {
              (void)multirun({"seed=1..10000", "training.steps=1..2"});
            }),
            "command line: 20000 runs, must be at most 10,000");
  EXPECT_EQ(refusal("seed=1,,2"), "command line: seed = 1,,2, must have no empty value");
  EXPECT_EQ(refusal("seed"), "command line: 'seed', must be key.path=value");
  EXPECT_EQ(refusal("data.path=a/b,c"),
            "command line: data.path = a/b, must have no '/': it names a folder");
}

TEST(Multirun, TellsAlgorithmsFromOtherSettings) {
  const auto algorithms = [](const Texts& words) { return compares_algorithms(multirun(words)); };
  EXPECT_TRUE(algorithms({"training.steps=50", "seed=1..3", "budget.evaluations=9,12"}));
  EXPECT_TRUE(algorithms({"algorithm={name: sga},{name: motpe}", "algorithm.population=4,8"}));
  EXPECT_FALSE(algorithms({"seed=1..3", "training.steps=50,100"}));
  EXPECT_FALSE(algorithms({"algorithms_of_mine=1,2"}));
}

}  // namespace
}  // namespace nas
