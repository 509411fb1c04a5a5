#include "study/continuing.hpp"

#include <sstream>

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/verify.hpp"
#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "unit/fake_measurement.hpp"
#include "unit/message_of.hpp"

namespace nas::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A run of a measurement whose identity is {"fake": 1}.
class ContinuingTest : public ::testing::Test {
 protected:
  ContinuingTest() { experiment_.resolved = {{"seed", 42}}; }

  [[nodiscard]] static nlohmann::json environment(const std::string& torch = "1.13.1") {
    return {{"attnas", "0.3.0"},  {"revision", "abc"},         {"torch", torch},
            {"blas", "openblas"}, {"instruction_set", "AVX2"}, {"device", "cpu"}};
  }
  void record(const nlohmann::json& environment) {
    Store store(file_);
    store.begin_session(environment);
    store.set_meta("config", experiment_.resolved);
    const auto task = make_task(measurement_, {"a|a|a|0.5"}, 0);
    Evaluation evaluation;
    evaluation.id = task.id;
    evaluation.candidate = task.candidate.name;
    evaluation.identity = task.identity;
    store.add({evaluation});
  }
  [[nodiscard]] std::string refusal(const nlohmann::json& environment, bool force = false) const {
    return message_of<InputError>([&] {
      check_continuation(Store(file_, Store::Mode::read_only), experiment_, measurement_, folder_,
                         environment, force);
    });
  }
  [[nodiscard]] std::string warning(const nlohmann::json& environment) const {
    return environment_warning(Store(file_, Store::Mode::read_only), environment);
  }

  const TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  fs::path file_ = folder_ / "store.sqlite";
  Experiment experiment_;
  FakeMeasurement measurement_;
  static constexpr const char* kFine = "nothing was thrown";
};

TEST_F(ContinuingTest, ASearchUnderOtherRulesContinuesOnlyWhereTheyAgree) {
  const auto refusal_of = [this](const std::vector<Status>& statuses, bool old) {
    fs::remove(file_);
    record(environment());
    {
      Store store(file_);
      Ask ask{.genotype = "a|a|a|0.5", .fitness = {1.0}};
      for (std::size_t i = 0; i < statuses.size(); ++i) {
        const auto task = make_task(measurement_, {"b|a|a|0.5"}, static_cast<std::int64_t>(i));
        Evaluation evaluation;
        evaluation.id = task.id;
        evaluation.candidate = task.candidate.name;
        evaluation.identity = task.identity;
        evaluation.status = statuses[i];
        store.add({evaluation});
        ask.evaluations.push_back(task.id);
      }
      store.add_asks({ask});
      if (!old) store.set_meta("answering", kAnswering);
    }
    return refusal(environment());
  };
  EXPECT_EQ(refusal_of({Status::ok, Status::ok}, true), kFine);
  EXPECT_EQ(refusal_of({Status::diverged, Status::failed}, true), kFine) << "failed then and now";
  EXPECT_THAT(refusal_of({Status::rejected}, true),
              AllOf(HasSubstr("charged the budget for candidates that constraints reject"),
                    HasSubstr(folder_.string()), HasSubstr("another folder with --output")));
  EXPECT_THAT(refusal_of({Status::ok, Status::diverged}, true),
              HasSubstr("by their successful replicates alone"));
  EXPECT_THAT(refusal_of({Status::stopped_early}, true),
              HasSubstr("treated candidates that were stopped early like fully trained ones"));
  for (const auto status : {Status::rejected, Status::stopped_early}) {
    EXPECT_EQ(refusal_of({status}, false), kFine);
  }
  EXPECT_EQ(refusal_of({Status::ok, Status::diverged}, false), kFine);
}

TEST_F(ContinuingTest, FlopsOfAnotherContextAreThoseOfTheModelsOwnInRecordsOfBefore) {
  Store store(file_);
  EXPECT_EQ(outdated_values(store), "");
  store.set_meta("answering", 2);
  for (const auto& [flops, expected] : std::vector<std::pair<nlohmann::json, std::string>>{
           {{{"name", "flops"}, {"as", "flops"}, {"context", 0}}, ""},
           {{{"name", "flops"}, {"as", "long"}, {"context", 4096}}, ""},
           {{{"name", "flops"}, {"as", "flops"}, {"context", 4096}},
            "took FLOPs at the model's own context for those at context = 4096"}}) {
    store.set_meta("config", {{"objectives", {{{"name", "perplexity"}}, flops}}});
    EXPECT_EQ(outdated_values(store), expected);
  }
  store.set_meta("answering", kAnswering);
  EXPECT_EQ(outdated_values(store), "");
}

TEST_F(ContinuingTest, SearchesThatRankedByPagmosCrowdingAreNotContinued) {
  record(environment());
  Store store(file_);
  store.set_meta("answering", 3);
  for (const auto& [name, variation, refused] :
       std::vector<std::tuple<std::string, std::string, bool>>{{"nspso", "", true},
                                                               {"nsga2", "all", true},
                                                               {"nsga2", "active", false},
                                                               {"nsga3", "", false}}) {
    experiment_.resolved["algorithm"] = {{"name", name}, {"variation", variation}};
    store.set_meta("config", experiment_.resolved);
    EXPECT_THAT(refusal(environment()),
                refused ? HasSubstr("ranked by pagmo's crowding distance") : HasSubstr(kFine))
        << name << ' ' << variation;
  }
}

TEST_F(ContinuingTest, TheSameRunContinues) {
  { const Store empty(file_); }
  EXPECT_EQ(refusal(environment()), kFine);
  record(environment());
  EXPECT_EQ(refusal(environment()), kFine);
  EXPECT_EQ(warning(environment()), "");
}

TEST_F(ContinuingTest, AnotherConfigurationOrDeviceIsRefused) {
  record(environment());
  auto other = environment();
  other["device"] = "cuda";
  EXPECT_THAT(refusal(other), HasSubstr("was begun on cpu, this would continue on cuda"));
  EXPECT_EQ(refusal(other, true), kFine);
  experiment_.resolved["seed"] = 43;
  EXPECT_THAT(refusal(environment()), HasSubstr("another configuration:\n  seed: 42 -> 43"));
  experiment_.resolved["mechanisms"] = {"mqa"};
  EXPECT_THAT(refusal(environment()),
              HasSubstr(" holds a search, not a run of listed mechanisms: give "
                        "another folder with --output"));
}

/// The identity stands for the results version, the corpus, ...
TEST_F(ContinuingTest, RecordsThatAnotherVersionMadeAreRefused) {
  record(environment());
  measurement_.version_ = 2;
  for (const bool expensive : {true, false}) {
    measurement_.expensive_ = expensive;
    EXPECT_THAT(refusal(environment()),
                AllOf(HasSubstr(folder_.string() + " holds evaluations that would now be made "
                                                   "otherwise:\n  fake: 1 -> 2"),
                      HasSubstr("another folder with --output"),
                      HasSubstr("(attnas 0.3.0, revision abc)")));
  }
}

TEST_F(ContinuingTest, AnotherLibraryIsAWarningThatNamesBoth) {
  record(environment());
  EXPECT_EQ(refusal(environment("2.0.0")), kFine);
  EXPECT_THAT(warning(environment("2.0.0")),
              AllOf(HasSubstr("LibTorch 1.13.1 -> 2.0.0"), HasSubstr("in the last digits")));
  auto other = environment();
  other["blas"] = "reference";
  other["instruction_set"] = "AVX3";
  EXPECT_THAT(warning(other),
              HasSubstr("BLAS openblas -> reference; instruction set AVX2 -> AVX3"));
  other = environment();
  other["revision"] = "def";
  EXPECT_EQ(warning(other), "") << "revisions of one results version agree";
}

TEST_F(ContinuingTest, WhateverDecidesAboutBitsIsCompared) {
  auto whole = environment();
  whole.update({{"torch_capability", "AVX2"},
                {"blas_kernels", "Haswell"},
                {"libc", "2.36"},
                {"variables", {{"OMP_NUM_THREADS", "1"}}}});
  record(whole);
  EXPECT_TRUE(tells_environment(whole));
  EXPECT_EQ(warning(whole), "");
  for (const std::string key :
       {"torch", "torch_capability", "blas", "blas_kernels", "libc", "instruction_set"}) {
    auto other = whole;
    other[key] = "other";
    EXPECT_THAT(warning(other), HasSubstr(" -> other. Results may differ")) << key;
    auto old = whole;  // a program that did not tell it
    old.erase(key);
    EXPECT_THAT(environment_changes(old, other), ::testing::IsEmpty()) << key;
  }
  auto other = whole;
  other["variables"] = {{"ATEN_CPU_CAPABILITY", "default"}};
  EXPECT_THAT(warning(other), HasSubstr("ATEN_CPU_CAPABILITY not set -> default; OMP_NUM_THREADS "
                                        "1 -> not set. Results may differ"));
  for (const auto& old : {environment(), nlohmann::json()}) {
    EXPECT_FALSE(tells_environment(old));
    EXPECT_THAT(environment_changes(old, other), ::testing::IsEmpty()) << "did not tell variables";
  }
}

TEST_F(ContinuingTest, VerifyingNamesDamagedRecordsAndRemovesThem) {
  record(environment());
  const auto verify = [this](bool remove, bool expected) {
    std::ostringstream out;
    EXPECT_EQ(verify_run(folder_, remove, out), expected) << out.str();
    return out.str();
  };
  EXPECT_THAT(verify(false, true), HasSubstr("store.sqlite: 3 records as written"));
  SQLite::Database(file_.string(), SQLite::OPEN_READWRITE)
      .exec("UPDATE evaluations SET reason = 'x'");
  EXPECT_THAT(verify(false, false), AllOf(HasSubstr("its SHA-256 does not fit"),
                                          HasSubstr("1 damaged record with --remove")));
  EXPECT_THAT(verify(true, true), HasSubstr("removed"));
  EXPECT_THAT(verify(false, true), HasSubstr("3 records as written"));
  EXPECT_TRUE(Store(file_, Store::Mode::read_only).evaluations().empty());
  EXPECT_THAT(message_of<InputError>([&] {
                std::ostringstream out;
                (void)verify_run(folder_ / "absent", false, out);
              }),
              HasSubstr("absent: no such store"));
}

}  // namespace
}  // namespace nas::testing
