#include "study/session/continuing.hpp"

#include <SQLiteCpp/SQLiteCpp.h>

#include "cli/verify.hpp"
#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "prelude.hpp"
#include "unit/fake_measurement.hpp"

namespace nas::testing {
namespace {

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

TEST_F(ContinuingTest, ASearchUnderOtherRulesIsNotContinued) {
  record(environment());
  Store store(file_);
  store.set_meta("answering", kAnswering - 1);
  EXPECT_EQ(refusal(environment()), kFine) << "it has asked for nothing yet";
  store.add_asks({{.genotype = "a|a|a|0.5",
                   .evaluations = {store.evaluations().front().id},
                   .fitness = {1.0}}});
  EXPECT_THAT(refusal(environment()),
              AllOf(HasSubstr(folder_.string() + " holds a search of an earlier version"),
                    HasSubstr("another folder with --output")));
  store.set_meta("answering", kAnswering);
  EXPECT_EQ(refusal(environment()), kFine);
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
                {"exact_products", "float32"},
                {"tf32_products", "tiles"},
                {"fast_products", "pairs"},
                {"variables", {{"OMP_NUM_THREADS", "1"}}}});
  record(whole);
  EXPECT_TRUE(tells_environment(whole));
  EXPECT_EQ(warning(whole), "");
  for (const std::string key :
       {"torch", "torch_capability", "blas", "blas_kernels", "libc", "instruction_set",
        "exact_products", "tf32_products", "fast_products"}) {
    auto other = whole;
    other[key] = "other";
    EXPECT_THAT(warning(other), HasSubstr(" -> other. Results may differ")) << key;
    auto old = whole;  // a program that did not tell it
    old.erase(key);
    EXPECT_THAT(environment_changes(old, other), IsEmpty()) << key;
  }
  auto other = whole;
  other["variables"] = {{"ATEN_CPU_CAPABILITY", "default"}};
  EXPECT_THAT(warning(other), HasSubstr("ATEN_CPU_CAPABILITY not set -> default; OMP_NUM_THREADS "
                                        "1 -> not set. Results may differ"));
  for (const auto& old : {environment(), nlohmann::json()}) {
    EXPECT_FALSE(tells_environment(old));
    EXPECT_THAT(environment_changes(old, other), IsEmpty()) << "did not tell variables";
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
