#include "evaluation/model_selection.hpp"

#include "prelude.hpp"

namespace nas {
namespace {

using Models = std::vector<ScoredModel>;

TEST(ModelsToKeep, OfOneObjectiveAreTheBest) {
  const Models models{{.values = {3}}, {.values = {1}}, {.values = {2}}, {.values = {1}}};
  EXPECT_THAT(models_to_keep(models, 2), ElementsAre(1, 3)) << "the older one of equals first";
  EXPECT_THAT(models_to_keep(models, 3), ElementsAre(1, 3, 2));
  EXPECT_THAT(models_to_keep(models, 9), ElementsAre(1, 3, 2, 0));
  EXPECT_TRUE(models_to_keep({}, 2).empty());
}

TEST(ModelsToKeep, OfSeveralObjectivesAreTheFrontBeforeAllOthers) {
  // The second best by the first objective is dominated.
  const Models models{{.values = {1, 5}}, {.values = {1.5, 6}}, {.values = {9, 1}}};
  EXPECT_THAT(models_to_keep(models, 2), ElementsAre(0, 2));
  EXPECT_THAT(models_to_keep(models, 1), ElementsAre(0, 2)) << "nothing of the front is lost";
  EXPECT_THAT(models_to_keep(models, 3), ElementsAre(0, 2, 1));
}

TEST(ModelsToKeep, BreakNoConstraintWhereOthersDoNot) {
  const Models models{{.feasible = false, .values = {1}}, {.values = {2}}, {.values = {3}}};
  EXPECT_THAT(models_to_keep(models, 1), ElementsAre(1));
  EXPECT_THAT(models_to_keep(models, 3), ElementsAre(1, 2, 0));
  const Models front{{.feasible = false, .values = {1, 1}}, {.values = {2, 3}}};
  EXPECT_THAT(models_to_keep(front, 1), ElementsAre(1));
}

TEST(ModelsToKeep, HaveTheBestOfTheBaselineAmongThem) {
  const Models models{{.baseline = true, .values = {4}},
                      {.values = {2}},
                      {.baseline = true, .values = {3}},
                      {.values = {1}}};
  EXPECT_THAT(models_to_keep(models, 1), ElementsAre(3, 2));
  EXPECT_THAT(models_to_keep(models, 3), ElementsAre(3, 1, 2)) << "it is there already";
}

}  // namespace
}  // namespace nas
