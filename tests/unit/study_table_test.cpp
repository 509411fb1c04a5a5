#include "table/study_table.hpp"

#include "core/error.hpp"
#include "prelude.hpp"
#include "small_study.hpp"

namespace nas::testing {
namespace {

TEST(StudyTable, FindsTheMechanismOfEveryGenotype) {
  const auto study = small_study();
  RandomEngine random(3);
  std::set<std::int64_t> found;
  for (int i = 0; i < 200; ++i) {
    const auto genotype = study.space().draw(random);
    const auto mechanism = study.mechanism(genotype);
    EXPECT_EQ(study.table().mechanism(mechanism), small_name(genotype));
    found.insert(mechanism);
  }
  EXPECT_EQ(found.size(), 12U);  // of 16 combinations
}

TEST(StudyTable, FindsItWhereARealGeneVariesToo) {
  auto genes = small_space().genes();
  genes.back().max = 0.3;
  const auto study = small_study(ReplayMode::noisy, false, small_table(), SearchSpace(genes));
  RandomEngine random(3);
  const auto genotype = study.space().draw(random);
  EXPECT_EQ(study.table().mechanism(study.mechanism(genotype)), small_name(genotype));
}

TEST(StudyTable, RefusesASpaceThatTheTableDoesNotHave) {
  auto genes = small_space().genes();
  genes[0].options = {"dot", "cosine"};
  EXPECT_EQ(message_of<InputError>([&] {
              const auto study =
                  small_study(ReplayMode::noisy, false, small_table(), SearchSpace(genes));
            }),
            "the table small does not have the mechanism cosine|softmax|none|fixed|bias|0 of "
            "the space");
}

TEST(StudyTable, WhatIsNoModelIsRejected) {
  const auto table = small_table();
  const StudyTable study(
      table, {.space = small_space(),
              .objectives = small_objectives(),
              .mode = ReplayMode::noisy,
              .problem = std::make_shared<RefusingMeasurement>(table, ReplayMode::noisy, 77)});
  for (std::int64_t i = 0; i < table.num_mechanisms(); ++i) {
    const bool additive = table.mechanism(i).starts_with("additive");
    EXPECT_EQ(study.cell(i, 0).rejected, additive) << table.mechanism(i);
    EXPECT_EQ(is_usable(study.cell(i, 0).status), !additive);
  }
}

TEST(StudyTable, ACellAnswersAsItsEvaluationWould) {
  const auto study = small_study(ReplayMode::noisy, true);
  const auto& name = study.table().mechanism(5);
  for (const std::int64_t replicate : {0, 2}) {
    const auto evaluation = small_evaluation(name, replicate);
    const auto& cell = study.cell(5, replicate);
    EXPECT_THAT(cell.fitness, ElementsAre(evaluation.curve.back().valid.perplexity(),
                                          evaluation.values.at("parameters")));
    EXPECT_TRUE(is_usable(cell.status));
    EXPECT_EQ(cell.seconds, evaluation.measured.at("cpu_seconds"));
  }
  const std::vector<std::int64_t> both{0, 2};
  EXPECT_DOUBLE_EQ(study.judge(5, both).fitness.front(),
                   (study.cell(5, 0).fitness.front() + study.cell(5, 2).fitness.front()) / 2);
}

TEST(StudyTable, FurtherReplicatesAnswerToo) {
  const auto study = small_study(ReplayMode::noisy, false, small_table(unequal_cells()));
  const auto& name = study.table().mechanism(0);
  EXPECT_THAT(study.cell(0, 7).fitness,
              ElementsAre(small_evaluation(name, 7).curve.back().valid.perplexity()));
  EXPECT_FALSE(is_usable(study.cell(1, 7).status)) << "there is none";
  EXPECT_EQ(study.believed(0), small_study().believed(0)) << "those that answer searches";
}

TEST(StudyTable, UnderMeanOneCellStandsForAll) {
  const auto study = small_study(ReplayMode::mean);
  double perplexity = 0.0;
  double seconds = 0.0;
  for (std::int64_t replicate = 0; replicate < 3; ++replicate) {
    const auto evaluation = small_evaluation(study.table().mechanism(5), replicate);
    perplexity += evaluation.curve.back().valid.perplexity() / 3.0;
    seconds += evaluation.measured.at("cpu_seconds").get<double>() / 3.0;
  }
  EXPECT_NEAR(study.cell(5, 0).fitness.front(), perplexity, 1e-9);
  EXPECT_EQ(&study.cell(5, 2), &study.cell(5, 0));
  EXPECT_NEAR(study.cell(5, 0).seconds, seconds, 1e-9);
}

TEST(StudyTable, WhatIsBelievedIsTheMeanOverAllReplicates) {
  const auto study = small_study(ReplayMode::noisy, true);
  const auto mechanism = study.table().find("additive|softmax|none|learned|bias|0").value();
  double mean = 0.0;
  for (std::int64_t replicate = 0; replicate < 3; ++replicate) {
    mean += study.cell(mechanism, replicate).fitness.front() / 3.0;
  }
  EXPECT_THAT(study.believed(mechanism), ElementsAre(DoubleNear(mean, 1e-9), 1100.0));
}

TEST(StudyTable, FailedAndMissingCellsAreFailures) {
  auto cells = small_cells();
  cells[3].status = Status::diverged;  // the second mechanism's first replicate
  cells.erase(cells.begin() + 4);
  const auto study = small_study(ReplayMode::noisy, false, small_table(cells));
  for (const std::int64_t replicate : {0, 1}) {
    EXPECT_FALSE(is_usable(study.cell(1, replicate).status));
    EXPECT_THAT(study.cell(1, replicate).fitness, ElementsAre(10.0 + 10.0 * 10.0));
  }
  EXPECT_EQ(study.cell(1, 1).seconds, 0.0);
  EXPECT_THAT(study.believed(1), ElementsAre(10.0 + 10.0 * 10.0)) << "one failure is enough";
}

}  // namespace
}  // namespace nas::testing
