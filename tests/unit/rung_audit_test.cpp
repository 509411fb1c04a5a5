#include "table/rung_audit.hpp"

#include <cmath>

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "message_of.hpp"
#include "small_table.hpp"

namespace nas {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::int64_t kMechanisms = 90;

/// A table whose mechanisms have ranks by nll: `early` at steps 10 and 20, `late` at 40.
class RungAuditTest : public ::testing::Test {
 protected:
  template <class Rank>
  [[nodiscard]] Table table(Rank early, Rank late, std::int64_t replicates = 2) const {
    std::vector<Evaluation> cells;
    for (std::int64_t i = 0; i < kMechanisms; ++i) {
      for (std::int64_t r = 0; r < replicates; ++r) {
        auto cell = testing::small_evaluation("m" + std::to_string(1000 + i), r);
        for (auto& point : cell.curve) {
          const auto rank = point.step == 40 ? late(i, r) : early(i, r);
          point.valid.nll = 1000.0 + static_cast<double>(10 * rank - point.step);
        }
        cell.values.erase("perplexity");
        cell.values["flops"] = static_cast<double>(kMechanisms - i);
        cells.push_back(cell);
      }
    }
    const auto file = folder_.path() / "ranks.table";
    write_table(testing::small_content(cells), file);
    return Table(file);
  }

  TemporaryFolder folder_;
};

using Rank = std::int64_t (*)(std::int64_t, std::int64_t);
constexpr Rank kInOrder = [](std::int64_t i, std::int64_t) { return i; };
constexpr Rank kReversed = [](std::int64_t i, std::int64_t) { return kMechanisms - i; };
/// Replicate 1 has another order.
constexpr Rank kBySeed = [](std::int64_t i, std::int64_t r) {
  return r == 0 ? i : (37 * i + 50) % kMechanisms;
};

RungAudit::Options options(std::vector<std::int64_t> rungs = {10, 40}) {
  return {.rungs = std::move(rungs), .searches = 40};
}

const RungAudit::Replayed& row(const RungAudit& audit, const std::string& method,
                               std::int64_t budget) {
  return *std::find_if(audit.replayed.begin(), audit.replayed.end(), [&](const auto& one) {
    return one.method == method && one.budget == budget;
  });
}

TEST_F(RungAuditTest, RungsThatRankAsTheEndPruneNothingGood) {
  const auto audit = audit_rungs(table(kInOrder, kInOrder), options());
  ASSERT_EQ(audit.agreement.size(), 3U);
  for (const auto& rung : audit.agreement) {
    EXPECT_DOUBLE_EQ(rung.correlation, 1.0);
    EXPECT_EQ(rung.overlap, 1.0);
  }
  EXPECT_EQ(audit.first_trusted_step, 10);
  EXPECT_THAT(audit.eta, ElementsAre(4.0));
  const auto& halving = row(audit, "successive halving", 20);
  // n first steps and n / 4 whole training runs from there: 10 n + 30 floor(n / 4) <= 800.
  EXPECT_EQ(halving.started, 47.0);
  EXPECT_EQ(halving.finished, 11.0);
  EXPECT_NEAR(halving.saved, 1.0 - (470.0 + 330.0) / (47.0 * 40.0), 1e-12);
  EXPECT_EQ(halving.top_3.count, 0);
  EXPECT_GT(halving.top_3.of, 40);
  // The best one that was started comes to the end.
  EXPECT_LT(halving.regret.mean, row(audit, "full length", 20).regret.mean);
  EXPECT_LT(row(audit, "asha", 40).top_3.share(), 0.05);  // started as the budget ended
  EXPECT_EQ(row(audit, "full length", 20).started, 20.0);
  EXPECT_EQ(row(audit, "full length", 20).saved, 0.0);
  EXPECT_THAT(audit.verdict(), StartsWith("The first rung is not too early: step 10 has 100 %"));
}

TEST_F(RungAuditTest, RungsThatRankTheOtherWayRoundPruneAllThatIsGood) {
  const auto audit = audit_rungs(table(kReversed, kInOrder), options({10, 20, 40}));
  EXPECT_DOUBLE_EQ(audit.agreement.front().correlation, -1.0);
  EXPECT_EQ(audit.agreement.front().overlap, 0.0);
  EXPECT_EQ(audit.first_trusted_step, std::nullopt);
  for (const auto* method : {"successive halving", "asha"}) {
    const auto& pruned = row(audit, method, 40);
    EXPECT_EQ(pruned.top_3.share(), 1.0) << method;
    EXPECT_GT(pruned.regret.mean, row(audit, "full length", 40).regret.mean) << method;
  }
  EXPECT_THAT(audit.verdict(), StartsWith("The first rung is too early: step 10 has 0 %"));
}

TEST_F(RungAuditTest, NoiseBetweenSeedsIsTheMeasure) {
  const auto noisy = audit_rungs(table(kBySeed, kBySeed), options());
  EXPECT_DOUBLE_EQ(noisy.agreement.front().correlation, 1.0);
  EXPECT_LT(noisy.between_seeds.front().correlation, 0.5);
  EXPECT_NEAR(noisy.agreement.front().noise, 1.64525, 1e-5) << "by the formula, elsewhere";
  EXPECT_EQ(audit_rungs(table(kInOrder, kInOrder), options()).agreement.front().noise, 0.0);
  // What is the best with the seeds that a search saw is not with others.
  const auto& halving = row(noisy, "successive halving", 60);
  EXPECT_GT(halving.fresh_regret.mean, halving.regret.mean);
  const auto alone = audit_rungs(table(kInOrder, kInOrder, 1), options());
  EXPECT_TRUE(std::isnan(alone.between_seeds.front().correlation));
  EXPECT_TRUE(std::isnan(alone.agreement.front().noise));
  EXPECT_TRUE(std::isnan(row(alone, "asha", 10).fresh_regret.mean));
  EXPECT_THAT(alone.verdict(), StartsWith("One replicate does not tell"));
}

TEST_F(RungAuditTest, SeveralObjectivesAreJudgedByTheirFront) {
  // The better by perplexity, the more FLOPs: all are on the front.
  auto settings = options();
  settings.objectives = {"perplexity", "flops"};
  const auto audit = audit_rungs(table(kInOrder, kInOrder), settings);
  EXPECT_EQ(audit.agreement.size(), 3U);  // FLOPs are known before
  const auto& whole = row(audit, "full length", 10);
  EXPECT_EQ(whole.front.of, 40 * 10);
  EXPECT_GT(whole.regret.mean, 0.0);
  EXPECT_LT(whole.regret.mean, 1.0);
  settings.spread = Spread::epsilon_net;
  EXPECT_NE(row(audit_rungs(table(kInOrder, kInOrder), settings), "asha", 20).regret.mean,
            row(audit, "asha", 20).regret.mean);
}

TEST_F(RungAuditTest, WhatDivergesIsPaidForAndNeverGoesOn) {
  auto cells = testing::small_cells();
  for (auto& cell : cells) {
    if (cell.candidate.starts_with("dot")) continue;
    cell.status = Status::diverged;
    cell.reason = "loss";
    cell.curve.resize(1);
  }
  const auto file = folder_.path() / "diverged.table";
  write_table(testing::small_content(cells), file);
  const auto audit = audit_rungs(Table(file), options({10, 20, 40}));
  const auto& halving = row(audit, "successive halving", 10);
  EXPECT_EQ(halving.started, 12.0);
  EXPECT_EQ(halving.top_3.of, 3 * 40);
  EXPECT_TRUE(std::isfinite(halving.regret.mean));
  EXPECT_THAT(
      audit.verdict(),
      StartsWith("12 mechanisms do not tell whether the first rung is too early, 64 would"));
}

TEST_F(RungAuditTest, IsDeterministicAndHasFormsForPrograms) {
  const auto ranks = table(kBySeed, kInOrder);
  const auto audit = audit_rungs(ranks, options());
  const nlohmann::json json = audit;
  EXPECT_EQ(json, nlohmann::json(audit_rungs(ranks, options())));
  EXPECT_EQ(json.at("rungs"), nlohmann::json({10, 40}));
  EXPECT_EQ(json.at("replayed").size(), 12U);
  EXPECT_EQ(json.at("replayed")[1].at("method"), "successive halving");
  const auto lines = csv(audit);
  EXPECT_THAT(lines, StartsWith("part,of,at,quantity,value\nagreement,perplexity,10,correlation,"));
  EXPECT_THAT(lines, HasSubstr("\nreplayed,asha,60,pruned_top_16,"));
}

TEST_F(RungAuditTest, SaysWhatIsWrong) {
  const auto ranks = table(kInOrder, kInOrder);
  const auto refusal = [&ranks](const RungAudit::Options& wrong) {
    return message_of<InputError>([&] { (void)audit_rungs(ranks, wrong); });
  };
  const std::string rungs = ", must be two or more of 10, 20, 40, ascending, the last one 40";
  EXPECT_EQ(refusal(options({10, 15, 40})), "--rungs 10, 15, 40" + rungs);
  EXPECT_EQ(refusal(options({10, 20})), "--rungs 10, 20" + rungs);
  EXPECT_EQ(refusal(options({20, 10, 40})), "--rungs 20, 10, 40" + rungs);
  EXPECT_EQ(refusal(options({10, 10, 40})), "--rungs 10, 10, 40" + rungs);
  EXPECT_EQ(refusal(options({40})), "--rungs 40" + rungs);
  auto wrong = options();
  wrong.eta = 1.0;
  EXPECT_EQ(refusal(wrong), "--eta 1, must be finite and greater than 1");
  wrong = options();
  wrong.searches = 0;
  EXPECT_EQ(refusal(wrong), "--seeds 0, must be at least 1");
  wrong = options();
  wrong.objectives = {"seed_sd"};
  EXPECT_EQ(refusal(wrong), "--objectives seed_sd, must be one that a single training run has");
  wrong.objectives = {"flops"};
  EXPECT_THAT(refusal(wrong), HasSubstr("flops: all are known before training"));
  wrong.objectives = {"perplexity", "state_bytes"};
  EXPECT_THAT(refusal(wrong), HasSubstr("state_bytes: the table does not have it, recorded: "));
  wrong.objectives = {"perplxity"};
  EXPECT_THAT(refusal(wrong), HasSubstr("did you mean perplexity?"));
  auto cells = testing::small_cells();
  cells.pop_back();
  const auto file = folder_.path() / "missing.table";
  write_table(testing::small_content(cells), file);
  EXPECT_THAT(message_of<InputError>([&] { (void)audit_rungs(Table(file), options()); }),
              HasSubstr("the table has no replicate 2 of"));
}

}  // namespace

}  // namespace nas
