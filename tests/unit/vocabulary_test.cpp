#include "data/vocabulary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data_fixture.hpp"

namespace nas {
namespace {

using testing::ElementsAre;
constexpr auto kStandard = Vocabulary::Specials::unknown_end;
constexpr auto kPublished = Vocabulary::Specials::pad_unknown_end;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for_each_line(text, [&](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

TEST(Lines, LastLineMayLackItsEnd) {
  EXPECT_THAT(lines_of("a\n\nb c\n"), ElementsAre("a", "", "b c"));
  EXPECT_THAT(lines_of("a\nb"), ElementsAre("a", "b"));
  EXPECT_THAT(lines_of(""), ElementsAre());
  EXPECT_THAT(lines_of("\n"), ElementsAre(""));
}

TEST(Words, AnyWhiteSpaceSeparates) {
  std::vector<std::string> words;
  for_each_word(" a\tbc \r\n d", [&](std::string_view word) { words.emplace_back(word); });
  EXPECT_THAT(words, ElementsAre("a", "bc", "d"));
}

TEST(Vocabulary, WordsByCountTiesByFirstShowing) {
  const Vocabulary vocabulary("z y x y x w", 0, kStandard);
  EXPECT_EQ(vocabulary.size(), 6);
  EXPECT_EQ(vocabulary.id("y"), 2);
  EXPECT_EQ(vocabulary.id("x"), 3);
  EXPECT_EQ(vocabulary.id("z"), 4);
  EXPECT_EQ(vocabulary.id("w"), 5);
}

TEST(Vocabulary, ListsItsWordsById) {
  EXPECT_THAT(Vocabulary("z y x y x w", 5, kStandard).words(),
              ElementsAre("<unk>", "<eos>", "y", "x", "z"));
  EXPECT_THAT(Vocabulary("a b a", 0, kPublished).words(),
              ElementsAre("<pad>", "<unk>", "<eos>", "a", "b"));
}

TEST(Vocabulary, IsMadeOfItsWordsAgain) {
  for (const auto specials : {kStandard, kPublished}) {
    const Vocabulary vocabulary("z y <eos> x y x w <unk>", 0, specials);
    const Vocabulary again(vocabulary.words(), specials);
    EXPECT_EQ(again.words(), vocabulary.words());
    EXPECT_EQ(again.id("<eos>"), vocabulary.id("<eos>"));
    EXPECT_EQ(again.id("v"), vocabulary.special().unknown);
  }
}

TEST(Vocabulary, RefusesWordsThatAreNone) {
  const auto error = [](const std::vector<std::string>& words) {
    return error_of([&] { const Vocabulary vocabulary(words, kStandard); });
  };
  EXPECT_EQ(error({"<unk>"}), "line 2: must be <eos>");
  EXPECT_EQ(error({"<pad>", "<unk>", "<eos>"}), "line 1: must be <unk>");
  EXPECT_EQ(error({"<unk>", "<eos>", "a", "a"}), "line 4: 'a' is there already");
  EXPECT_EQ(error({"<unk>", "<eos>", "<unk>"}), "line 3: '<unk>' is there already");
  EXPECT_EQ(error({"<unk>", "<eos>", "a b"}),
            "line 3: 'a b' is no word: empty, or with white space");
  EXPECT_EQ(error({"<unk>", "<eos>", ""}), "line 3: '' is no word: empty, or with white space");
}

TEST(Vocabulary, CutAtTheSizeSpecialsIncluded) {
  const Vocabulary vocabulary("z y x y x w", 5, kStandard);
  EXPECT_EQ(vocabulary.size(), 5);
  EXPECT_EQ(vocabulary.id("z"), 4);
  EXPECT_EQ(vocabulary.id("w"), vocabulary.special().unknown);
  EXPECT_EQ(vocabulary.id("never seen"), vocabulary.special().unknown);
}

TEST(Vocabulary, SmallTextGivesFewerIdsThanAskedFor) {
  EXPECT_EQ(Vocabulary("a b", 10000, kStandard).size(), 4);
  EXPECT_EQ(Vocabulary("a b", 10000, kPublished).size(), 5);
}

TEST(Vocabulary, SpecialIds) {
  const Vocabulary standard("a", 0, kStandard);
  EXPECT_EQ(standard.special().pad, -1);
  EXPECT_EQ(standard.special().unknown, 0);
  EXPECT_EQ(standard.special().end_of_sentence, 1);
  const Vocabulary published("a", 0, kPublished);
  EXPECT_EQ(published.special().pad, 0);
  EXPECT_EQ(published.special().unknown, 1);
  EXPECT_EQ(published.special().end_of_sentence, 2);
  EXPECT_EQ(published.id("a"), 3);
}

TEST(Vocabulary, UnknownWordOfTheTextIsNotCounted) {
  const Vocabulary vocabulary("<unk> <unk> <unk> a b a", 3, kStandard);
  EXPECT_EQ(vocabulary.id("<unk>"), 0);
  EXPECT_EQ(vocabulary.id("a"), 2);
  EXPECT_EQ(vocabulary.id("b"), 0);
}

TEST(Vocabulary, RefusesASizeWithoutRoomForAWord) {
  EXPECT_EQ(error_of([] { Vocabulary("a", 2, kStandard); }),
            "data.vocabulary = 2, must be 0 (every word) or at least 3");
  EXPECT_EQ(error_of([] { Vocabulary("a", 3, kPublished); }),
            "data.vocabulary = 3, must be 0 (every word) or at least 4");
  EXPECT_EQ(error_of([] { Vocabulary("a", 3, kStandard); }), "nothing was thrown");
}

}  // namespace
}  // namespace nas
