#include "evaluation/ledger.hpp"

#include "prelude.hpp"

namespace nas {
namespace {

TEST(Ledger, KnownReplicatesAnswerAgainAndCostNothing) {
  Ledger ledger({.replicates = 2});
  Ledger::Account account;
  EXPECT_EQ(ledger.ask(account, false)->num_fresh(), 2);
  EXPECT_EQ(ledger.evaluations(), 2);
  const auto again = ledger.ask(account, false);
  EXPECT_EQ(again->num_fresh(), 0);
  EXPECT_EQ(again->end, 2);
  EXPECT_EQ(ledger.asked(), 2);
  EXPECT_EQ(ledger.evaluations(), 2);
}

TEST(Ledger, EndsBeforeWhatTheBudgetDoesNotAllow) {
  Ledger ledger({.replicates = 2, .budget = {.evaluations = 3}});
  Ledger::Account first, second;
  EXPECT_TRUE(ledger.ask(first, false).has_value());
  EXPECT_EQ(ledger.room(), 1);
  EXPECT_FALSE(ledger.ask(second, false).has_value());
  EXPECT_EQ(ledger.spent(), "3 evaluations");
  EXPECT_EQ(ledger.asked(), 1);
  EXPECT_EQ(second.replicates, 0);
}

TEST(Ledger, WhatHasEndedTheSearchStandsThoughThereIsRoomForOneMore) {
  Ledger ledger({.replicates = 2, .budget = {.evaluations = 3}});
  Ledger::Account first, second;
  EXPECT_TRUE(ledger.ask(first, false).has_value());
  EXPECT_FALSE(ledger.ask(second, false).has_value());
  ledger.end_by_evaluations();  // of a race that wanted more than the one
  EXPECT_EQ(ledger.spent(), "3 evaluations");
}

TEST(Ledger, EndsBeforeMoreStepsThanTheBudgetAllows) {
  Ledger ledger({.budget = {.train_steps = 100}, .steps = 40});
  Ledger::Account accounts[4];
  EXPECT_TRUE(ledger.ask(accounts[0], false).has_value());
  EXPECT_EQ(ledger.room(), 1);
  EXPECT_TRUE(ledger.ask(accounts[1], false).has_value());
  EXPECT_FALSE(ledger.ask(accounts[2], false).has_value());
  EXPECT_EQ(ledger.spent(), "100 training steps");
  EXPECT_EQ(ledger.steps(), 80);
  EXPECT_TRUE(ledger.ask(accounts[0], false).has_value()) << "known ones cost nothing";
  ledger.take_back_steps(25);  // one of them was stopped early
  EXPECT_EQ(ledger.steps(), 55);
  EXPECT_TRUE(ledger.ask(accounts[2], false).has_value());
  EXPECT_EQ(ledger.room(), 0);
  ledger.end_by_evaluations();
  EXPECT_EQ(ledger.spent(), "100 training steps");
}

TEST(Ledger, WhatIsRejectedIsFreeButNotForever) {
  Ledger ledger({.budget = {.evaluations = 1, .rejections = 3}});
  Ledger::Account account;
  EXPECT_EQ(ledger.ask(account, true)->num_fresh(), 1);
  EXPECT_EQ(ledger.ask(account, true)->num_fresh(), 0);
  EXPECT_TRUE(ledger.ask(account, true).has_value());
  EXPECT_EQ(ledger.evaluations(), 0);
  EXPECT_FALSE(ledger.ask(account, true).has_value());
  EXPECT_EQ(ledger.spent(), "3 candidates in a row rejected by constraints");
}

TEST(Ledger, ARaceHasRoomForASecondEvaluationOfEachNewcomer) {
  Ledger ledger({.budget = {.evaluations = 5}, .racing = true});
  Ledger::Account accounts[3];
  ledger.begin_batch();
  EXPECT_TRUE(ledger.ask(accounts[0], false).has_value());
  EXPECT_TRUE(ledger.ask(accounts[1], false).has_value());
  EXPECT_FALSE(ledger.ask(accounts[2], false).has_value())
      << "3 and 3 further ones are more than 5";
  ledger.race(2);
  EXPECT_EQ(ledger.room(), 1);
}

TEST(Ledger, WhatDidNotTakePlaceIsTakenBack) {
  Ledger ledger({.budget = {.train_seconds = 10.0}});
  Ledger::Account first, second;
  (void)ledger.ask(first, false);
  (void)ledger.ask(second, false);
  ledger.charge(9.0);
  EXPECT_FALSE(ledger.out_of_time());
  EXPECT_EQ(ledger.seconds_left(), 1.0);
  ledger.end_by_time();
  EXPECT_EQ(ledger.spent(), "");
  ledger.charge(2.0);
  EXPECT_EQ(ledger.seconds_left(), 0.0);
  EXPECT_EQ(Ledger({}).seconds_left(), std::nullopt) << "no such limit";
  EXPECT_TRUE(ledger.out_of_time());
  ledger.take_back_asks(1);
  ledger.take_back_evaluations(1);
  ledger.end_by_time();
  EXPECT_EQ(ledger.asked(), 1);
  EXPECT_EQ(ledger.evaluations(), 1);
  EXPECT_EQ(ledger.spent(), "10 s of training");
}

}  // namespace
}  // namespace nas
