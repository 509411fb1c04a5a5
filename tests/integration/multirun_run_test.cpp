// Lists of values: a run of each in a folder of its own, and one page that compares them.

#include "integration/program.hpp"

namespace nas::testing {
namespace {

class MultirunTest : public ProgramTest {
 protected:
  std::set<std::string> folders() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_ / "runs")) {
      if (entry.is_directory()) found.insert(entry.path().filename());
    }
    return found;
  }
  Texts words(Texts more) const {
    more.insert(more.begin(),
                {config("smoke.yaml"), "--multirun", "-o", (folder_ / "runs").string()});
    return more;
  }
};

TEST_F(MultirunTest, EachValueHasAFolderAndAllAPage) {
  auto all = words({"algorithm.mutation=0.3", "seed=1..2"});
  ASSERT_TRUE(ran("nas-run", all));
  expect_text("run 2 of 2: seed=2");
  const std::set<std::string> wanted{"seed=1", "seed=2"};
  EXPECT_EQ(folders(), wanted);
  EXPECT_TRUE(fs::exists(folder_ / "runs" / "compare.html")) << text();
  for (const auto& name : wanted) EXPECT_TRUE(fs::exists(folder_ / "runs" / name / "report.html"));
  const auto before = canonical_export(folder_ / "runs" / *wanted.begin());
  ASSERT_TRUE(ran("nas-run", {config("smoke.yaml"), "algorithm.mutation=0.3", "seed=1",
                              "--no-report", "-o", (folder_ / "alone").string()}));
  EXPECT_EQ(canonical_export(folder_ / "alone"), before) << "a run as any other";
  // The same command continues: what is done is not done again.
  all = words({"algorithm.mutation=0.3", "seed=1..3", "--no-report"});
  ASSERT_TRUE(ran("nas-run", all));
  EXPECT_EQ(folders(), (std::set<std::string>{"seed=1", "seed=2", "seed=3"}));
}

TEST_F(MultirunTest, OtherSettingsHaveAPageOfTheirOwn) {
  ASSERT_TRUE(ran("nas-run", words({"training.learning_rate=0.001,0.002"})));
  EXPECT_TRUE(fs::exists(folder_ / "runs" / "sweep.html")) << text();
  EXPECT_FALSE(fs::exists(folder_ / "runs" / "compare.html"));
  EXPECT_THAT(read_file(folder_ / "runs" / "sweep.md"),
              HasSubstr("2 values of training.learning_rate"));
}

TEST_F(MultirunTest, NothingIsWrittenWhereAValueIsWrong) {
  expect_refusal("nas-run", words({"seed=1,2", "algorithm.mutation=0.3,3"}),
                 "algorithm.mutation = 3");
  expect_refusal("nas-run", words({"seed=1"}),
                 "--multirun: no setting has several values; seed=1..5 has");
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

}  // namespace
}  // namespace nas::testing
