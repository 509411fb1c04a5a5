#include "cli/status.hpp"

#include <optional>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "store/store.hpp"

namespace nas::testing {
namespace {

/// A training run that a worker makes.
nlohmann::json array_of(const std::string& worker) {
  return {{"trainings", {{{"evaluation", "e"}, {"candidate", "c"}, {"replicate", 1}}}},
          {"started", "2026-01-31T12:00:00Z"},
          {"step", 1200},
          {"steps", 5000},
          {"curve", nlohmann::json::array()},
          {"worker", worker}};
}

nlohmann::json working(const std::vector<nlohmann::json>& arrays) {
  return {{"stage", "search"},
          {"workers", 2},
          {"waiting", 14},
          {"arrays", arrays},
          {"written", "2026-01-31T12:30:00Z"}};
}

TEST(Status, SaysWhoWorksOnWhatAndDisturbsNobody) {
  const TemporaryFolder folder;
  std::optional<Store> store(folder.path() / "store.sqlite");
  EXPECT_THAT(status_text(folder.path()), EndsWith(": 0 evaluations, a process works on it\n"));
  store->set_meta("labels", {{"c", "dot|softmax"}});
  auto several = array_of("node3:17");
  several["trainings"].push_back({{"evaluation", "f"}, {"candidate", "d"}, {"replicate", 0}});
  several["step"] = 0;
  several.erase("worker");
  store->set_meta("at_work", working({array_of("node3:17"), several}));
  EXPECT_EQ(status_text(folder.path()),
            folder.path().string() +
                ": 0 evaluations, search, 2 workers, as of 2026-01-31T12:30:00Z\n"
                "  node3:17  dot|softmax seed 2, step 1,200/5,000, since 2026-01-31T12:00:00Z\n"
                "  of nas-run  dot|softmax seed 2 + 1 more, since 2026-01-31T12:00:00Z\n"
                "  14 waiting\n");
  store.reset();
  EXPECT_THAT(status_text(folder.path()), EndsWith(": 0 evaluations, nobody works on it\n"))
      << "its process has left what it worked on";
  Store(folder.path() / "store.sqlite").set_meta("ended_by", "the end of the algorithm");
  EXPECT_THAT(status_text(folder.path()), HasSubstr(", ended by the end of the algorithm\n"));
}

TEST(Status, NamesTheRunWhereItsRecordIsNone) {
  const TemporaryFolder folder;
  Store store(folder.path() / "store.sqlite");
  store.set_meta("at_work", {{"stage", 3}});
  EXPECT_THAT(message_of<InputError>([&] { (void)status_text(folder.path()); }),
              StartsWith((folder.path() / "store.sqlite").string() +
                         ": the record of fact at_work is damaged: "));
  auto nothing = array_of("node3:17");
  nothing["trainings"] = nlohmann::json::array();
  store.set_meta("at_work", working({nothing}));
  EXPECT_THAT(status_text(folder.path()), EndsWith(", as of 2026-01-31T12:30:00Z\n  14 waiting\n"));
}

TEST(Status, NamesOfOthersDoNotCommandTheTerminal) {
  const TemporaryFolder folder;
  Store store(folder.path() / "store.sqlite");
  store.set_meta("labels", {{"c", "dot\x1b[2J"}});
  store.set_meta("at_work", working({array_of("x\x1b]0;owned\a")}));
  EXPECT_THAT(status_text(folder.path()),
              HasSubstr("  x\uFFFD]0;owned\uFFFD  dot\uFFFD[2J seed 2, step"));
}

TEST(Status, NeedsAStore) {
  EXPECT_THAT(message_of<InputError>([] { (void)status_text("nowhere"); }),
              HasSubstr("nowhere: no such store; give a run's folder"));
}

}  // namespace
}  // namespace nas::testing
