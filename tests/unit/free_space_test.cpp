#include "study/session/free_space.hpp"

#include "core/error.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

constexpr std::int64_t kMebi = std::int64_t{1} << 20U;

TEST(FreeSpace, ACheckpointIsWeightsAndTwoMomentsBesideTheOneItReplaces) {
  const DiskNeed need{.parameters = kMebi, .evaluations = 0};
  EXPECT_EQ(need.to_begin(), kMebi + 2 * 12 * kMebi);
  EXPECT_EQ(need.in_all(), need.to_begin() + 12 * kMebi);
  const DiskNeed more{.parameters = kMebi, .at_once = 4, .kept_models = 3, .evaluations = 32};
  EXPECT_EQ(more.in_all(), more.to_begin() + 4 * 12 * kMebi + 4 * 4 * kMebi + kMebi);
}

TEST(FreeSpace, TooLittleIsRefusedAndScarceIsWarnedOf) {
  const DiskNeed need{.parameters = kMebi, .at_once = 2, .kept_models = 2, .evaluations = 100};
  const auto warning = [&](std::int64_t available) {
    ::testing::internal::CaptureStderr();
    check_free_space("runs/x", static_cast<std::uintmax_t>(available), need);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(warning(need.in_all()), "");
  EXPECT_THAT(warning(need.in_all() - 1), HasSubstr("warning: runs/x has "));
  EXPECT_THAT(warning(need.to_begin()), HasSubstr(" free, the run needs about "));
  try {
    (void)warning(need.to_begin() - 1);
    FAIL() << "it began";
  } catch (const MachineError& error) {
    ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(error.what(), HasSubstr("no space left in runs/x: 25 MiB are free"));
  }
}

}  // namespace
}  // namespace nas
