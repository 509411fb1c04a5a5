#include "core/registry.hpp"

#include "prelude.hpp"

namespace nas {
namespace {

using Numbers = Registry<int(int)>;

Numbers numbers() {
  Numbers registry("number");
  registry.add({.key = "twice", .summary = "2 n", .file = "twice.cpp"},
               [](int n) { return 2 * n; });
  registry.add({.key = "square", .summary = "n n", .file = "square.cpp"},
               [](int n) { return n * n; });
  return registry;
}

TEST(Registry, MakesWhatIsRegistered) {
  const auto registry = numbers();
  EXPECT_EQ(registry.at("twice").make(5), 10);
  EXPECT_EQ(registry.at("square").make(5), 25);
  EXPECT_EQ(registry.at("square").description.summary, "n n");
  EXPECT_TRUE(registry.contains("twice"));
  EXPECT_FALSE(registry.contains("thrice"));
}

TEST(Registry, SortsItsKeys) { EXPECT_EQ(numbers().keys(), (Texts{"square", "twice"})); }

TEST(Registry, NamesKnownKeysAndTheNearest) {
  const auto registry = numbers();
  EXPECT_EQ(message_of<InputError>([&] { (void)registry.at("twise"); }),
            "unknown number 'twise'; did you mean twice? Known: square, twice");
  EXPECT_EQ(registry.unknown("logarithm"), "unknown number 'logarithm', known: square, twice");
}

TEST(RegistryDeathTest, ADuplicateEndsTheProgramNamingTheFirst) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto registry = numbers();
  EXPECT_DEATH(registry.add({.key = "twice", .summary = "again", .file = "other.cpp"},
                            [](int n) { return n; }),
               "number 'twice' is registered twice, first by twice.cpp");
}

}  // namespace
}  // namespace nas
