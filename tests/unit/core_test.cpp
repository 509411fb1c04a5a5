#include <cmath>
#include <fstream>
#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/hash.hpp"
#include "core/parameters.hpp"
#include "core/registry.hpp"
#include "core/seed.hpp"

namespace nas {
namespace {

using ::testing::HasSubstr;

template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Error, RangeNamesTheValueAndWhatIsAllowed) {
  EXPECT_NO_THROW(require_in_range("cr", 0.0, 0.0, 1.0));
  EXPECT_NO_THROW(require_in_range("cr", 1.0, 0.0, 1.0));
  EXPECT_EQ(message_of([] { require_in_range("cr", 1.4, 0.0, 1.0); }),
            "cr = 1.4, must be in [0, 1]");
  EXPECT_EQ(message_of([] { require_in_range("cr", -0.1, 0.0, 1.0); }),
            "cr = -0.1, must be in [0, 1]");
  EXPECT_THROW(require_in_range("cr", std::nan(""), 0.0, 1.0), InputError);
}

TEST(Error, NearestFindsTyposAndNothingElse) {
  const std::vector<std::string> words{"softmax", "sparsemax", "sigmoid"};
  EXPECT_EQ(nearest("sparsmax", words), "sparsemax");
  EXPECT_EQ(nearest("sotfmax", words), "softmax");
  EXPECT_EQ(nearest("frobnicate", words), "");
  EXPECT_EQ(join({"a", "b"}), "a, b");
}

TEST(Format, ShortestReadsBackEqual) {
  for (const double value : {0.1, 1.0 / 3.0, 3e-4, 1e300, -0.0, 98.45, 5e-324}) {
    EXPECT_EQ(std::strtod(shortest(value).c_str(), nullptr), value) << shortest(value);
  }
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(std::nan("")), "nan");
  EXPECT_EQ(human_duration(41.2), "41 s");
  EXPECT_EQ(human_duration(200), "3 min 20 s");
  EXPECT_EQ(human_duration(7500), "2 h 05 min");
  EXPECT_EQ(human_duration(4 * 86400 + 3 * 3600), "4 d 3 h");
  EXPECT_EQ(human_count(1693184), "1.69 M");
  EXPECT_EQ(human_count(12), "12");
  EXPECT_EQ(human_bytes(std::int64_t{319} << 20U), "319 MiB");
}

TEST(Hash, KnownVectors) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_THAT(message_of([] { sha256_file("/no/such/file"); }), HasSubstr("/no/such/file"));
}

TEST(Seed, DependsOnEveryPart) {
  std::set<std::uint64_t> seeds{derive_seed(1, 0, "init", "a")};
  EXPECT_TRUE(seeds.insert(derive_seed(2, 0, "init", "a")).second);
  EXPECT_TRUE(seeds.insert(derive_seed(1, 1, "init", "a")).second);
  EXPECT_TRUE(seeds.insert(derive_seed(1, 0, "shuffle", "a")).second);
  EXPECT_TRUE(seeds.insert(derive_seed(1, 0, "init", "b")).second);
  EXPECT_TRUE(seeds.insert(derive_seed(1, 0, "init", 0)).second);
  // Results of old runs depend on these values.
  EXPECT_EQ(derive_seed(42, 0, "init", "embedding"), derive_seed(42, 0, "init", "embedding"));
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafULL);  // first output of SplitMix64 from 0
}

TEST(Seed, BelowIsUniform) {
  RandomEngine random(1);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) ++counts.at(static_cast<std::size_t>(random.below(7)));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 5 * 93);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double u = random.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.015);
}

TEST(Setting, SaysWhatIsAllowed) {
  Setting rate{
      .name = "rate", .default_value = 0.5, .help = "", .min = 0, .max = 1, .max_exclusive = true};
  EXPECT_EQ(rate.allowed(), "in [0, 1)");
  EXPECT_EQ(rate.violation(Value(0.0)), "");
  EXPECT_EQ(rate.violation(Value(1.0)), "must be in [0, 1)");
  rate.min_exclusive = true;
  EXPECT_EQ(rate.violation(Value(0.0)), "must be in (0, 1)");
  const Setting choice{
      .name = "s", .default_value = std::string("a"), .help = "", .choices = {"alpha", "beta"}};
  EXPECT_EQ(choice.violation(Value(std::string("alpa"))),
            "must be one of alpha, beta; did you mean alpha?");
  const Setting steps{
      .name = "steps", .default_value = std::vector<std::int64_t>{}, .help = "", .min = 1};
  EXPECT_EQ(steps.violation(Value(std::vector<std::int64_t>{3, 0})), "every item must be >= 1");
}

TEST(Parameters, HoldsDefaultsAndRefusesWrongReads) {
  Parameters parameters({{.name = "steps", .default_value = std::int64_t{5}, .help = ""}});
  EXPECT_EQ(parameters.get<std::int64_t>("steps"), 5);
  EXPECT_THROW((void)parameters.get<double>("steps"), std::logic_error);
  EXPECT_THROW((void)parameters.get<double>("stepz"), std::logic_error);
  parameters.set("rate", 0.1);
  EXPECT_EQ(nlohmann::json(parameters).dump(), R"({"rate":0.1,"steps":5})");
}

using TestRegistry = Registry<int(int)>;

TEST(Registry, MakesWhatIsKnownAndNamesWhatIsThere) {
  TestRegistry registry("animal");
  registry.add({.key = "horse", .summary = ""}, [](int x) { return x + 1; });
  registry.add({.key = "cow", .summary = ""}, [](int x) { return x; });
  EXPECT_EQ(registry.at("horse").make(1), 2);
  EXPECT_EQ(message_of([&] { (void)registry.at("hose"); }),
            "unknown animal 'hose', known: cow, horse; did you mean horse?");
}

TEST(RegistryDeathTest, DuplicateAbortsNamingTheFirstFile) {
  TestRegistry registry("animal");
  registry.add({.key = "cow", .summary = "", .settings = {}, .file = "cow.cpp"},
               [](int x) { return x; });
  EXPECT_DEATH(registry.add({.key = "cow", .summary = ""}, [](int x) { return x; }),
               "animal 'cow' is registered twice, first by cow.cpp");
}

}  // namespace
}  // namespace nas
