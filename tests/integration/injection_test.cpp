// One fault at a time, at every kind of operation of a run that trains: what the process does, and
// what the same command comes to afterwards.

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "core/in_flight.hpp"
#include "integration/program.hpp"
#include "report/files.hpp"
#include "report/summary.hpp"
#include "store/store.hpp"

namespace nas::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// The outcomes of all faults as one table, when the test is over.
class Outcomes {
 public:
  Outcomes() = default;
  Outcomes(const Outcomes&) = delete;
  Outcomes& operator=(const Outcomes&) = delete;
  ~Outcomes() {
    for (const auto& [fault, outcome] : outcomes_) {
      std::cout << "  " << std::left << std::setw(24) << fault << outcome << '\n';
    }
  }
  void add(const std::string& fault, int code, const std::string& then) {
    outcomes_.emplace_back(fault, (code > 128 ? "killed by " + std::to_string(code - 128)
                                              : "exit code " + std::to_string(code)) +
                                      ", then " + then);
  }

 private:
  std::vector<std::pair<std::string, std::string>> outcomes_;
};

class InjectionTest : public ProgramTest {
 protected:
  std::vector<std::string> small_search(const fs::path& folder,
                                        const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{config("smoke.yaml"),
                                       "--output",
                                       folder.string(),
                                       "--no-report",
                                       "--plugin",
                                       NAS_FAULTY,
                                       "objectives=[faulty]",
                                       "algorithm.population=4",
                                       "algorithm.generations=1",
                                       "algorithm.elite=1",
                                       "algorithm.parents=2",
                                       "training.steps=20",
                                       "training.checkpoint_minutes=0.0001",
                                       "evaluation.keep_models=2",
                                       "evaluation.workers=1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  /// Environment of a program whose operation fails.
  [[nodiscard]] std::function<void()> injected(const std::string& fault,
                                               const fs::path& folder) const {
    return [=, says = (folder_ / "injected").string()] {
      setenv("LD_PRELOAD", NAS_INJECT_LIBRARY, 1);
      setenv("NAS_INJECT", fault.c_str(), 1);
      setenv("NAS_INJECT_FOLDER", folder.c_str(), 1);
      setenv("NAS_INJECT_SAYS", says.c_str(), 1);
    };
  }
  /// Fails every kind of operation in each of its ways.
  /// @param points  of the number of such operations in a run, those that fail: 0 is the first.
  void fail_at(const std::vector<double>& points);
  static std::function<void()> failing(const std::string& fault) {
    return [=] { setenv("NAS_TEST_FAULT", fault.c_str(), 1); };
  }
  /// As nas-export --canonical prints it.
  static std::string canonical_export(const fs::path& folder) {
    return nas::canonical_export(
        RunSummary(Store(folder / "store.sqlite", Store::Mode::read_only)));
  }
  /// The statuses of a run's evaluations.
  std::map<std::string, int> statuses(const fs::path& folder) {
    std::map<std::string, int> statuses;
    std::istringstream lines(canonical_export(folder));
    for (std::string line; std::getline(lines, line);) {
      const auto record = nlohmann::json::parse(line);
      if (record.contains("status")) ++statuses[record.at("status")];
    }
    return statuses;
  }
};

void InjectionTest::fail_at(const std::vector<double>& points) {
  const auto undisturbed = folder_ / "undisturbed";
  ASSERT_EQ(run("nas-run", small_search(undisturbed)), 0) << text();
  const auto expected = canonical_export(undisturbed);
  Outcomes outcomes;
  const std::map<std::string, std::vector<std::string>> ways{
      {"open", {"EIO", "kill"}},   {"write", {"ENOSPC", "kill"}}, {"sync", {"EIO", "kill"}},
      {"rename", {"EIO", "kill"}}, {"unlink", {"EIO", "kill"}},   {"allocate", {"ENOMEM"}}};
  const auto counted = folder_ / "counted";
  ASSERT_EQ(
      run("nas-run", small_search(counted), injected("all 0 count", counted), Start::executed), 0)
      << text();
  std::istringstream counts(read_file(folder_ / "injected"));
  std::string name;
  long count = 0;
  std::size_t operations = 0;
  for (; counts >> name >> count; ++operations) {
    ASSERT_GT(count, 2) << name;
    for (const auto& way : ways.at(name)) {
      for (const double point : points) {
        const long number = std::max(1L, std::lround(point * static_cast<double>(count)));
        const auto fault = name + " " + std::to_string(number) + " " + way;
        const auto folder = folder_ / ("run_" + name + std::to_string(number) + way);
        const int code =
            run("nas-run", small_search(folder), injected(fault, folder), Start::executed);
        const auto said = text();
        EXPECT_THAT(code, AnyOf(0, 2, 75, 128 + SIGKILL)) << fault << ": " << said;
        EXPECT_TRUE(code != 2 || number == 1) << "something had begun: " << fault << ": " << said;
        ASSERT_EQ(run("nas-run", small_search(folder)), 0) << fault << ": " << text();
        const bool equal = canonical_export(folder) == expected;
        EXPECT_TRUE(equal) << fault;
        outcomes.add(fault, code, equal ? "the same result" : "ANOTHER RESULT");
        fs::remove_all(folder);
      }
    }
  }
  EXPECT_EQ(operations, ways.size());
}

TEST_F(InjectionTest, NoFailedOperationChangesWhatARunFinds) { fail_at({0.5}); }

/// A test of label slow.
TEST_F(InjectionTest, DISABLED_NorDoesOneAtTheBeginningOrNearTheEnd) { fail_at({0.0, 0.25, 0.9}); }

TEST_F(InjectionTest, WhatHangsInTheSystemStillStopsOnRequest) {
  const auto folder = folder_ / "run";
  Program program("nas-run", small_search(folder), folder_ / "hangs.txt",
                  injected("sync 4 hang", folder), Start::executed);
  while (!fs::exists(folder_ / "injected")) std::this_thread::sleep_for(5ms);
  program.kill(SIGTERM);
  int code = -1;
  ASSERT_TRUE(program.wait_for(10s, code));
  EXPECT_EQ(code, 130);
  EXPECT_EQ(run("nas-run", small_search(folder)), 0) << text();
}

TEST_F(InjectionTest, AFailingTrainingRunIsBookedByItsCause) {
  const std::vector<std::string> more{"evaluation.array=1"};  // none is tried again alone
  const auto undisturbed = folder_ / "undisturbed";
  ASSERT_EQ(run("nas-run", small_search(undisturbed, more)), 0) << text();
  const auto expected = canonical_export(undisturbed);
  struct Case {
    std::string fault;
    int code;
  };
  Outcomes outcomes;
  for (const auto& [fault, code] : std::vector<Case>{{"2 machine", 75},
                                                     {"3 defect", 1},
                                                     {"2 memory", 0},
                                                     {"3 kill", 128 + SIGKILL},
                                                     {"2 abort", 128 + SIGABRT},
                                                     {"3 segfault", 128 + SIGSEGV}}) {
    const auto folder = folder_ / fault;
    EXPECT_EQ(run("nas-run", small_search(folder, more), failing(fault)), code) << fault << text();
    EXPECT_EQ(run("nas-run", small_search(folder, more)), 0) << fault << ": " << text();
    const bool equal = canonical_export(folder) == expected;
    EXPECT_TRUE(equal) << fault;
    outcomes.add("training run " + fault, code, equal ? "the same result" : "ANOTHER RESULT");
  }
  const auto failed = folder_ / "failed";
  EXPECT_EQ(run("nas-run", small_search(failed, more), failing("2 input")), 0) << text();
  EXPECT_EQ(statuses(failed)["failed"], 1);
}

/// The candidate that a search's second evaluation is of: not the baseline.
std::string second_candidate(const std::string& canonical) {
  std::istringstream lines(canonical);
  std::set<std::string> candidates;
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line);
    if (record.contains("status")) candidates.insert(record.at("candidate"));
  }
  candidates.erase("dot|softmax|none|fixed|bias|0.1");
  return *candidates.begin();
}

TEST_F(InjectionTest, AMechanismThatEndsTheProcessTwiceHasCrashed) {
  const auto undisturbed = folder_ / "undisturbed";
  ASSERT_EQ(run("nas-run", small_search(undisturbed)), 0) << text();
  const auto guilty = second_candidate(canonical_export(undisturbed));
  for (const std::string array : {"1", "4"}) {
    const std::vector<std::string> more{"evaluation.array=" + array, "evaluation.workers=1"};
    const auto folder = folder_ / array;
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(run("nas-run", small_search(folder, more), failing(guilty + " abort")),
                128 + SIGABRT)
          << text();
    }
    EXPECT_EQ(run("nas-run", small_search(folder, more), failing(guilty + " abort")), 0) << text();
    EXPECT_EQ(statuses(folder)["crashed"], 1) << "those beside it are innocent";
    EXPECT_THAT(canonical_export(folder), HasSubstr("it ended the process 2 times, by SIGABRT"));
    auto again = small_search(folder, more);
    again.insert(again.end(), {"--retry", "failed"});
    EXPECT_EQ(run("nas-run", again), 0) << text();
    EXPECT_EQ(canonical_export(folder), canonical_export(undisturbed));
  }
}

TEST_F(InjectionTest, ACrashOfAThreadAtNothingIsLaidToWhatIsAtWorkAlone) {
  const std::vector<std::string> more{"evaluation.array=4", "evaluation.workers=2"};
  const auto undisturbed = folder_ / "undisturbed";
  ASSERT_EQ(run("nas-run", small_search(undisturbed, more)), 0) << text();
  const auto guilty = second_candidate(canonical_export(undisturbed));
  const auto folder = folder_ / "run";
  int deaths = 0;
  while (run("nas-run", small_search(folder, more), failing(guilty + " thread")) != 0) {
    ASSERT_LE(++deaths, 4) << text();
    if (deaths > 1) continue;
    const auto endings = read_file(folder / "endings.txt");
    EXPECT_THAT(endings, HasSubstr(" beside\n"));
    EXPECT_THAT(endings, ::testing::Not(HasSubstr("SIGABRT"))) << "nobody is blamed";
  }
  EXPECT_EQ(deaths, 3) << "beside others, and twice alone";
  EXPECT_EQ(statuses(folder)["crashed"], 1);
  EXPECT_EQ(statuses(folder)["ok"], statuses(undisturbed)["ok"] - 1);
}

TEST_F(InjectionTest, AMechanismThatTakesTooLongIsTimedOut) {
  const auto folder = folder_ / "slow";
  EXPECT_EQ(run("nas-run",
                small_search(folder, {"training.steps=200", "evaluation.time_limit=0.000001"})),
            0)
      << text();
  const auto all = statuses(folder);
  EXPECT_EQ(all.size(), 1U);
  EXPECT_GT(all.at("timed_out"), 0);
  EXPECT_THAT(canonical_export(folder), HasSubstr("are more than evaluation.time_limit = 1e-06 s"));
}

TEST_F(InjectionTest, AMechanismThatHungTwiceIsTimedOut) {
  const std::vector<std::string> more{"evaluation.time_limit=100"};
  const auto undisturbed = folder_ / "undisturbed";
  ASSERT_EQ(run("nas-run", small_search(undisturbed, more)), 0) << text();
  const auto canonical = canonical_export(undisturbed);
  const auto guilty = second_candidate(canonical);
  const auto folder = folder_ / "run";
  fs::create_directories(folder);
  std::ofstream endings(folder / kEndingsFile);
  std::istringstream lines(canonical);
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line);
    if (!record.contains("status") || record.at("candidate") != guilty) continue;
    const auto name = record.at("id").get<std::string>() + " ";
    endings << name << InFlight::kOverdue << '\n' << name << InFlight::kOverdue << '\n';
  }
  endings.close();
  EXPECT_EQ(run("nas-run", small_search(folder, more)), 0) << text();
  EXPECT_EQ(statuses(folder)["timed_out"], 1);
  EXPECT_THAT(canonical_export(folder),
              HasSubstr("it hung for more than twice evaluation.time_limit = 100 s, 2 times"));
}

/// A test of label slow: it waits.
TEST_F(InjectionTest, DISABLED_AMechanismThatHangsEndsTheProcessAndIsTimedOut) {
  const std::vector<std::string> more{"evaluation.time_limit=5"};
  const auto undisturbed = folder_ / "undisturbed";
  ASSERT_EQ(run("nas-run", small_search(undisturbed, more)), 0) << text();
  const auto guilty = second_candidate(canonical_export(undisturbed));
  const auto folder = folder_ / "run";
  // As a first process leaves it, of which the whole array hung (InFlightTest).
  fs::create_directories(folder);
  {
    std::ofstream endings(folder / "endings.txt");
    const Store store(undisturbed / "store.sqlite", Store::Mode::read_only);
    for (const auto& evaluation : store.evaluations()) endings << evaluation.id << " overdue\n";
  }
  EXPECT_EQ(run("nas-run", small_search(folder, more), failing(guilty + " hang")), 75) << text();
  EXPECT_THAT(text(), HasSubstr("what is at work does not end"));
  EXPECT_EQ(run("nas-run", small_search(folder, more), failing(guilty + " hang")), 0) << text();
  EXPECT_EQ(statuses(folder)["timed_out"], 1);
}

}  // namespace
}  // namespace nas::testing
