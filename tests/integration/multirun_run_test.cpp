// Lists of values: a run of each in a folder of its own, and one page that compares them.

#include <set>

#include "integration/program.hpp"

namespace nas::testing {
namespace {

namespace fs = std::filesystem;

class MultirunTest : public ProgramTest {
 protected:
  std::set<std::string> folders() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_ / "runs")) {
      if (entry.is_directory()) found.insert(entry.path().filename());
    }
    return found;
  }
  std::vector<std::string> words(std::vector<std::string> more) const {
    more.insert(more.begin(),
                {config("smoke.yaml"), "--multirun", "-o", (folder_ / "runs").string()});
    return more;
  }
};

TEST_F(MultirunTest, EachValueHasAFolderAndAllAPage) {
  auto all = words({"algorithm.mutation=0.3", "seed=1..2"});
  ASSERT_EQ(run("nas-run", all), 0) << text();
  expect_text("run 2 of 2: seed=2");
  const std::set<std::string> wanted{"seed=1", "seed=2"};
  EXPECT_EQ(folders(), wanted);
  EXPECT_TRUE(fs::exists(folder_ / "runs" / "compare.html")) << text();
  for (const auto& name : wanted) EXPECT_TRUE(fs::exists(folder_ / "runs" / name / "report.html"));
  const auto before = canonical_export(folder_ / "runs" / *wanted.begin());
  ASSERT_EQ(run("nas-run", {config("smoke.yaml"), "algorithm.mutation=0.3", "seed=1", "--no-report",
                            "-o", (folder_ / "alone").string()}),
            0)
      << text();
  EXPECT_EQ(canonical_export(folder_ / "alone"), before) << "a run as any other";
  // The same command continues: what is done is not done again.
  all = words({"algorithm.mutation=0.3", "seed=1..3", "--no-report"});
  ASSERT_EQ(run("nas-run", all), 0) << text();
  EXPECT_EQ(folders(), (std::set<std::string>{"seed=1", "seed=2", "seed=3"}));
}

TEST_F(MultirunTest, OtherSettingsHaveAPageOfTheirOwn) {
  ASSERT_EQ(run("nas-run", words({"training.learning_rate=0.001,0.002"})), 0) << text();
  EXPECT_TRUE(fs::exists(folder_ / "runs" / "sweep.html")) << text();
  EXPECT_FALSE(fs::exists(folder_ / "runs" / "compare.html"));
  EXPECT_THAT(read_file(folder_ / "runs" / "sweep.md"),
              ::testing::HasSubstr("2 values of training.learning_rate"));
}

TEST_F(MultirunTest, NothingIsWrittenWhereAValueIsWrong) {
  EXPECT_EQ(run("nas-run", words({"seed=1,2", "algorithm.mutation=0.3,3"})), 2);
  expect_text("algorithm.mutation = 3");
  EXPECT_EQ(run("nas-run", words({"seed=1"})), 2);
  expect_text("--multirun: no setting has several values; seed=1..5 has");
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
}

}  // namespace
}  // namespace nas::testing
