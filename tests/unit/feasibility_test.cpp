#include "study/session/feasibility.hpp"

#include "core/format.hpp"
#include "prelude.hpp"
#include "study/session/ranges.hpp"
#include "unit/data_fixture.hpp"
#include "unit/widths.hpp"

namespace nas::testing {
namespace {

/// The width and how far it is from 100, both by formula.
ChosenObjective width(bool distance = false) {
  ChosenObjective chosen;
  chosen.name = chosen.key = distance ? "distance" : "width";
  chosen.objective.unit = "1";
  chosen.objective.analytic = [distance](const Subject& subject) {
    const auto width = static_cast<double>(subject.architecture.width);
    return distance ? std::abs(width - 100.0) : width;
  };
  return chosen;
}

ObjectiveSet under(std::vector<Constraint> constraints) {
  return {.objectives = {width()}, .constraints = std::move(constraints)};
}

const SearchSpace kSpace({{.name = "width", .options = {"32", "64", "128", "256"}},
                          {.name = "other", .options = {"a", "b", "c"}},
                          {.name = "real", .max = 1.0}});

/// Of which what is too wide is no model, and what its real gene says perhaps.
class NarrowOnes final : public Widths {
 public:
  NarrowOnes(int most, double least_real) : most_(most), least_real_(least_real) {}
  [[nodiscard]] Candidate canonical(const Genotype& genotype) const override {
    return check(Widths::canonical(genotype), genotype.real("real"));
  }
  [[nodiscard]] Candidate parse(const std::string& name) const override {
    return check({.name = name}, 1.0);
  }
  [[nodiscard]] std::optional<Subject> subject(const Candidate& candidate) const override {
    EXPECT_EQ(candidate.refusal, "");
    return Widths::subject(candidate);
  }

 private:
  [[nodiscard]] Candidate check(Candidate candidate, double real) const {
    if (std::stoi(candidate.name) > most_) candidate.refusal = "too wide";
    if (real < least_real_) candidate.refusal = shortest(real) + " is too small";
    return candidate;
  }

  int most_;
  double least_real_;
};

std::optional<Feasibility> feasibility_of(const ObjectiveSet& objectives, const SearchSpace& space,
                                          const Problem& problem) {
  return feasibility(objectives, shown_candidates(space, problem), problem);
}

TEST(Feasibility, CountsWhatIsAModel) {
  const auto found = feasibility_of(under({}), kSpace, NarrowOnes(64, 0.0)).value();
  EXPECT_EQ(found.models_text(),
            "6 of 12 combinations are models; others are rejected, e.g.: too wide");
  EXPECT_NO_THROW(found.require_any());
  const auto constrained =
      feasibility_of(under({{.quantity = width(), .bound = 32}}), kSpace, NarrowOnes(64, 0.0))
          .value();
  EXPECT_EQ(constrained.models, 6);
  EXPECT_EQ(constrained.text(), "3 of 12 combinations satisfy width <= 32");
}

TEST(Feasibility, RefusesASpaceWithoutAModel) {
  const auto none = feasibility_of(under({}), kSpace, NarrowOnes(16, 0.0)).value();
  EXPECT_EQ(error_of([&] { none.require_any(); }),
            "space: none of its 12 combinations is a model, e.g.: too wide");
}

TEST(Feasibility, RealGenesThatDecideWhetherThereIsAModelAreDrawn) {
  const auto found = feasibility_of(under({}), kSpace, NarrowOnes(256, 0.75)).value();
  EXPECT_FALSE(found.whole);
  EXPECT_NEAR(static_cast<double>(found.models), 5000, 250);
  EXPECT_THAT(found.models_text(),
              MatchesRegex("[0-9]+ of 20000 random combinations are models: "
                           "2[45]\\.[0-9]+ % to 2[56]\\.[0-9]+ % of the space; others "
                           "are rejected, e\\.g\\.: .* is too small"));
  const auto none = feasibility_of(under({}), kSpace, NarrowOnes(256, 2.0)).value();
  EXPECT_EQ(none.models, 0);
  EXPECT_NO_THROW(none.require_any()) << "what was not drawn may be one";
}

TEST(Feasibility, RangesAreThoseOfModels) {
  auto objectives = under({});
  const NarrowOnes narrow(64, 0.0);
  set_expected_ranges(objectives, shown_candidates(kSpace, narrow), narrow, {});
  EXPECT_EQ(objectives.objectives.front().range->best, 32.0);
  EXPECT_EQ(objectives.objectives.front().range->worst, 64.0);
  auto unknown = under({});
  const NarrowOnes none(16, 0.0);
  EXPECT_EQ(
      error_of([&] { set_expected_ranges(unknown, shown_candidates(kSpace, none), none, {}); }),
      "objectives: nothing is known of the range of width, since no combination of the "
      "space that was looked at is a model (too wide); give objectives.width.range");
}

TEST(Feasibility, CountsTheCombinationsThatSatisfyAllConstraints) {
  const auto found = feasibility_of(under({{.quantity = width(), .at_most = true, .bound = 128},
                                           {.quantity = width(), .at_most = false, .bound = 64}}),
                                    kSpace, Widths());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->text(), "6 of 12 combinations satisfy width <= 128 and width >= 64");
  EXPECT_NO_THROW(found->require_any());
}

TEST(Feasibility, IsNothingWhereNoFormulaDecides) {
  EXPECT_FALSE(feasibility_of(under({}), kSpace, Widths()));
  ChosenObjective trained;
  trained.objective.trained = [](const Evaluation&) { return 0.0; };
  EXPECT_FALSE(feasibility_of(under({{.quantity = trained}}), kSpace, Widths()));
}

TEST(Feasibility, RefusesConstraintsThatExcludeEverything) {
  const auto refusal = [](std::vector<Constraint> constraints) {
    const auto found = feasibility_of(under(std::move(constraints)), kSpace, Widths());
    return error_of([&] { found->require_any(); });
  };
  EXPECT_EQ(refusal({{.quantity = width(), .at_most = true, .bound = 31}}),
            "constraints: none of the 12 combinations of the space satisfies width <= 31: width <= "
            "31 excludes all, the least value is 32");
  EXPECT_EQ(refusal({{.quantity = width(), .at_most = true, .bound = 64},
                     {.quantity = width(), .at_most = false, .bound = 257}}),
            "constraints: none of the 12 combinations of the space satisfies width <= 64 and width "
            ">= 257: width >= 257 excludes all, the largest value is 256");
  EXPECT_EQ(refusal({{.quantity = width(), .at_most = true, .bound = 64},
                     {.quantity = width(true), .at_most = true, .bound = 30}}),
            "constraints: none of the 12 combinations of the space satisfies width <= 64 and "
            "distance <= 30 together");
}

TEST(Feasibility, OfALargeSpaceIsAShareWithItsInterval) {
  std::vector<Gene> genes{{.name = "width", .options = {"32", "64", "128", "256"}}};
  for (int i = 0; i < 10; ++i) {
    genes.push_back({.name = "gene" + std::to_string(i), .options = {"a", "b", "c"}});
  }
  const SearchSpace large(genes);
  const auto found =
      feasibility_of(under({{.quantity = width(), .bound = 32}}), large, Widths()).value();
  EXPECT_FALSE(found.whole);
  EXPECT_EQ(found.combinations, 20000);
  EXPECT_NEAR(static_cast<double>(found.passing), 5000, 250);
  EXPECT_THAT(found.text(),
              MatchesRegex("[45][0-9]+ of 20000 random combinations satisfy width <= 32: "
                           "2[45]\\.[0-9]+ % to 2[56]\\.[0-9]+ % of the space"));
  const auto none =
      feasibility_of(under({{.quantity = width(), .bound = 31}}), large, Widths()).value();
  EXPECT_NO_THROW(none.require_any()) << "what was not looked at may satisfy it";
  EXPECT_THAT(none.text(), StartsWith("0 of 20000 random combinations"));
}

TEST(Feasibility, ABaselineThatBreaksAConstraintIsWarnedOf) {
  const auto set = under({{.quantity = width(), .at_most = true, .bound = 100}});
  EXPECT_EQ(baseline_warning(set, "64", Widths()), "");
  EXPECT_EQ(baseline_warning(set, "", Widths()), "");
  EXPECT_EQ(baseline_warning(set, "128", Widths()),
            "the baseline 128 breaks a constraint, width = 128, must be <= 100: it will not "
            "be trained, and nothing is compared with it");
  EXPECT_EQ(baseline_warning(set, "64", NarrowOnes(32, 0.0)),
            "the baseline 64 is no model, too wide: it will not be trained, and nothing is "
            "compared with it");
}

}  // namespace
}  // namespace nas::testing
