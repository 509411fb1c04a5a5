#include "evaluation/endings.hpp"

#include <array>

#include "core/temporary_folder.hpp"
#include "prelude.hpp"

namespace nas::testing {
namespace {

/// A run's folder in which processes have ended: "one" by a signal twice, "two" by hanging once,
/// "beside" and "three" while both were at work.
class EndingsTest : public ::testing::Test {
 protected:
  [[nodiscard]] Endings forgiving(std::int64_t endings) const {
    return {folder_.path(), 10.0, endings};
  }
  static Evaluation of(const std::string& id) {
    Evaluation evaluation;
    evaluation.id = id;
    evaluation.measured = nlohmann::json::object();
    return evaluation;
  }

  const TemporaryFolder folder_;
  const fs::path file_ = folder_.write(
      kEndingsFile, "one SIGSEGV\ntwo overdue\none SIGFPE\nbeside beside\nthree beside\n");
  const Task one_{.candidate = {}, .replicate = 0, .id = "one", .identity = {}};
  const Task beside_{.candidate = {}, .replicate = 0, .id = "beside", .identity = {}};
  const Task other_{.candidate = {}, .replicate = 0, .id = "other", .identity = {}};
};

TEST_F(EndingsTest, WhatEndsMoreProcessesThanAreForgivenHasFailed) {
  auto one = of("one");
  EXPECT_FALSE(forgiving(2).decide(one));
  ASSERT_TRUE(forgiving(1).decide(one));
  EXPECT_EQ(one.status, Status::crashed);
  EXPECT_EQ(one.reason, "it ended the process 2 times, by SIGFPE");
  auto two = of("two");
  ASSERT_TRUE(forgiving(0).decide(two));
  EXPECT_EQ(two.status, Status::timed_out);
  EXPECT_EQ(two.reason, "it hung for more than twice evaluation.time_limit = 10 s, 1 times");
  auto beside = of("beside");
  EXPECT_FALSE(forgiving(0).decide(beside)) << "it may have been the other one";
  auto other = of("other");
  EXPECT_FALSE(forgiving(0).decide(other));
  EXPECT_FALSE(Endings({}, 10.0, 0).decide(one)) << "without a folder nothing is known";
}

TEST_F(EndingsTest, WhatWasBesideAnEndIsTriedAlone) {
  auto one = of("one");
  auto beside = of("beside");
  auto other = of("other");
  const Assignment first{one_, one};
  const Assignment second{beside_, beside};
  const Assignment third{other_, other};
  const auto endings = forgiving(2);
  EXPECT_THROW(endings.require_alone(std::array{second}), MeasureAlone);
  beside.measured["alone"] = true;
  EXPECT_NO_THROW(endings.require_alone(std::array{second}));
  EXPECT_NO_THROW(endings.require_alone(std::array{first})) << "that has a signal of its own";
  const std::array tasks{third, first, second, third};
  EXPECT_THAT(endings.apart({{0, 1, 2}, {3}}, tasks),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2), ElementsAre(3)));
  EXPECT_THAT(endings.apart({{0, 3}, {1, 2}}, tasks),
              ElementsAre(ElementsAre(0, 3), ElementsAre(1), ElementsAre(2)));
}

TEST_F(EndingsTest, WithoutAFolderNothingIsMarked) {
  auto other = of("other");
  const std::array tasks{Assignment{other_, other}};
  EXPECT_EQ(Endings({}, 10.0, 0).mark(tasks), nullptr);
  EXPECT_NE(forgiving(0).mark(tasks), nullptr);
}

}  // namespace
}  // namespace nas::testing
