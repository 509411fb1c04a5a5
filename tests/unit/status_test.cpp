#include "cli/status.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "store/store.hpp"
#include "unit/message_of.hpp"

namespace nas::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(Status, SaysWhoWorksOnWhatAndDisturbsNobody) {
  const TemporaryFolder folder;
  Store store(folder.path() / "store.sqlite");
  EXPECT_THAT(status_text(folder.path()), EndsWith(": 0 evaluations, nobody works on it\n"));
  store.set_meta("labels", {{"c", "dot|softmax"}});
  const nlohmann::json one{{"trainings", {{{"candidate", "c"}, {"replicate", 1}}}},
                           {"started", "2026-01-31T12:00:00Z"},
                           {"step", 1200},
                           {"steps", 5000},
                           {"worker", "node3:17"}};
  auto several = one;
  several["trainings"].push_back({{"candidate", "d"}, {"replicate", 0}});
  several["step"] = 0;
  several.erase("worker");
  store.set_meta("at_work", {{"stage", "search"},
                             {"workers", 2},
                             {"waiting", 14},
                             {"arrays", {one, several}},
                             {"written", "2026-01-31T12:30:00Z"}});
  EXPECT_EQ(
      status_text(folder.path()),
      folder.path().string() +
          ": 0 evaluations, search, 2 workers, as of 2026-01-31T12:30:00Z\n"
          "  node3:17  dot|softmax replicate 1, step 1,200/5,000, since 2026-01-31T12:00:00Z\n"
          "  of nas-run  dot|softmax replicate 1 + 1 more, since 2026-01-31T12:00:00Z\n"
          "  14 waiting\n");
  store.set_meta("at_work", nullptr);
  store.set_meta("ended_by", "the end of the algorithm");
  EXPECT_THAT(status_text(folder.path()), HasSubstr(", ended by the end of the algorithm\n"));
}

TEST(Status, NeedsAStore) {
  EXPECT_THAT(message_of<InputError>([] { (void)status_text("nowhere"); }),
              HasSubstr("nowhere: no such store; give a run's folder"));
}

}  // namespace
}  // namespace nas::testing
