#include "core/error.hpp"

#include "prelude.hpp"

namespace nas {
namespace {

std::string range_error(double value) {
  try {
    require_in_range("crossover", value, 0.0, 0.5);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(RequireInRange, AcceptsBothEnds) {
  EXPECT_EQ(range_error(0.0), "");
  EXPECT_EQ(range_error(0.5), "");
}

TEST(RequireInRange, SaysNameValueAndRange) {
  EXPECT_EQ(range_error(0.75), "crossover = 0.75, must be in [0, 0.5]");
  EXPECT_EQ(range_error(-1e-9), "crossover = -1e-09, must be in [0, 0.5]");
}

TEST(RequireInRange, RefusesWhatIsNoNumber) {
  EXPECT_EQ(range_error(std::numeric_limits<double>::quiet_NaN()),
            "crossover = nan, must be in [0, 0.5]");
  EXPECT_EQ(range_error(std::numeric_limits<double>::infinity()),
            "crossover = inf, must be in [0, 0.5]");
}

TEST(Nearest, FindsTheLeastEditDistance) {
  EXPECT_EQ(nearest("batchsize", {"steps", "batch_size", "clip_norm"}), "batch_size");
  EXPECT_EQ(nearest("sofmax", {"softmax", "softmax1"}), "softmax");
  EXPECT_EQ(nearest("softmax1", {"softmax", "softmax1"}), "softmax1");
}

TEST(Nearest, AllowsTwoEditsInShortWords) {
  EXPECT_EQ(nearest("do", {"dot"}), "dot");
  EXPECT_EQ(nearest("d", {"dot"}), "dot");
  EXPECT_EQ(nearest("", {"dot"}), "");
}

TEST(Nearest, AllowsAThirdOfLongWords) {
  EXPECT_EQ(nearest("abcdefghi", {"abcdefxyz"}), "abcdefxyz");  // 3 edits of 9
  EXPECT_EQ(nearest("abcdefghi", {"abcdewxyz"}), "");           // 4 edits
}

TEST(Nearest, KnowsAbbreviations) {
  const Texts names{"steps", "learning_rate", "random_search", "de"};
  EXPECT_EQ(nearest("lr", {"steps", "learning_rate"}), "learning_rate");
  EXPECT_EQ(nearest("random", names), "random_search");
  EXPECT_EQ(nearest("search", names), "random_search");
  EXPECT_EQ(nearest("earning", names), "") << "begins no word";
  EXPECT_EQ(nearest("steps_of_training", names), "steps");
  EXPECT_EQ(nearest("descent", names), "") << "two letters are too few";
}

TEST(Nearest, OfNothingIsNothing) { EXPECT_EQ(nearest("dot", {}), ""); }

TEST(Nearest, TakesTheFirstOfEquallyNear) { EXPECT_EQ(nearest("abc", {"abd", "abe"}), "abd"); }

TEST(IsUtf8, SaysWhatARecordCanHold) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("caf\u00e9"));
  EXPECT_FALSE(is_utf8("caf\xe9"));
  EXPECT_FALSE(is_utf8("caf\xc3")) << "half a letter";
}

TEST(Join, PutsSeparatorsBetweenItems) {
  EXPECT_EQ(join({}), "");
  EXPECT_EQ(join({"a"}), "a");
  EXPECT_EQ(join({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(join({"a", "b"}, "|"), "a|b");
}

}  // namespace
}  // namespace nas
