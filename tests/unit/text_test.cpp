#include "data/text.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/corpus_facts.hpp"
#include "data_fixture.hpp"

namespace nas {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
constexpr auto kNone = kNotScored;

Corpus corpus_of(const SplitTexts& texts, std::int64_t context,
                 std::initializer_list<std::pair<std::string, Value>> changes = {}) {
  auto all = text_settings();
  for (auto& setting : tokenizer_settings()) all.push_back(std::move(setting));
  Parameters settings(all);
  for (const auto& [name, value] : changes) settings.set(name, value);
  return text_corpus("test", "a text", texts, settings, context);
}

// Ids: <unk> 0, <eos> 1, a 2, b 3, c 4.
const SplitTexts kTexts{"a a a b\nb c\n", "a b\n\nd\n", "c\n"};

TEST(StandardLayout, OneStreamWithEndOfSentence) {
  const Corpus corpus = corpus_of(kTexts, 2);
  EXPECT_EQ(corpus.vocabulary, 5);
  EXPECT_THAT(corpus.train.tokens, ElementsAre(1, 2, 2, 2, 3, 1, 3, 4, 1));
  EXPECT_THAT(corpus.valid.tokens, ElementsAre(1, 2, 3, 1, 1, 0, 1));
  EXPECT_EQ(corpus.train.last_target, -1);
  EXPECT_EQ(corpus.unit, "word");
  EXPECT_EQ(corpus.tokenizer->file(), "<unk>\n<eos>\na\nb\nc\n");
}

TEST(StandardLayout, EveryTokenIsScoredOnce) {
  // 6 tokens with <eos>, windows of 4: 4 and 2.
  const Corpus corpus = corpus_of(kTexts, 4);
  EXPECT_THAT(corpus.valid.starts, ElementsAre(0, 4));
  EXPECT_EQ(corpus.valid.shift, 1);
  EXPECT_THAT(read_window(corpus.valid, 0).target, ElementsAre(2, 3, 1, 1));
  EXPECT_THAT(read_window(corpus.valid, 1).target, ElementsAre(0, 1, kNone, kNone));
  EXPECT_THAT(read_window(corpus.valid, 1).input, ElementsAre(1, 0, 1, 0));
  EXPECT_EQ(corpus.valid.num_scored(), 6);
}

TEST(StandardLayout, NumScoredIsTheNumberOfTokensForAnyContext) {
  for (std::int64_t context = 2; context <= 8; ++context) {
    const Corpus corpus = corpus_of(kTexts, context);
    EXPECT_EQ(corpus.valid.num_scored(), 6) << context;
    EXPECT_EQ(corpus.test.num_scored(), 2) << context;
  }
}

TEST(StandardLayout, TrainingWindowsKeepATargetAtEveryOffset) {
  for (std::int64_t context = 2; context <= 12; ++context) {  // the stream has 8 targets
    const Corpus corpus = corpus_of(kTexts, context);
    EXPECT_EQ(corpus.train.size(), std::max<std::int64_t>(1, 8 / context)) << context;
    EXPECT_EQ(corpus.train.shift, std::min<std::int64_t>(8, context)) << context;
    for (std::int64_t i = 0; i < corpus.train.size(); ++i) {
      for (std::int64_t offset = 0; offset < corpus.train.shift; ++offset) {
        EXPECT_NE(read_window(corpus.train, i, offset).target[0], kNone) << context;
      }
    }
  }
}

TEST(StandardLayout, BytesPerTokenIsOfTheValidationText) {
  EXPECT_DOUBLE_EQ(corpus_of(kTexts, 2).bytes_per_token, 7.0 / 6.0);
  const auto corpus = corpus_of({"a b\n", "a b\n", "a bbbb a\n"}, 2);
  EXPECT_DOUBLE_EQ(corpus.test_bytes_per_token, 9.0 / 4.0);
}

TEST(UnknownTokens, AreSaidBySplitAndTooManyWithWhatHasNone) {
  // Words of <unk>, <eos> and a; characters of <unk>, a and the blank; X is no amino acid.
  const SplitTexts texts{"a b a c\n", "a b\n", "c\n"};
  const auto shares = [&](const std::string& unit) {
    return unknown_shares(corpus_of(texts, 5, {{"unit", unit}, {"vocabulary", std::int64_t{3}}}));
  };
  using testing::Pair;
  EXPECT_THAT(shares("word"), ElementsAre(Pair("test", 0.5), Pair("train", 0.4),
                                          Pair("valid", testing::DoubleEq(1.0 / 3))));
  EXPECT_THAT(shares("char"), ElementsAre(Pair("test", 1.0), Pair("train", 0.2),  // "a b a"
                                          Pair("valid", 0.5)));
  EXPECT_EQ(
      unknown_shares(corpus_of({"ACX\nAC\n", "X\n", "A\n"}, 7, {{"unit", "residue"}})).at("train"),
      1.0 / 7);
  EXPECT_TRUE(unknown_shares(corpus_of(texts, 5, {{"unit", "byte"}})).empty());

  EXPECT_EQ(unknown_text(shares("word")),
            "40 % of the targets of train are <unk>, 33.33 % of valid, 50 % of test");
  EXPECT_EQ(unknown_text({}), "");
  Parameters settings(text_settings());
  EXPECT_EQ(unknown_warning({{"train", 0.0}, {"valid", 0.05}}, settings), "");
  EXPECT_THAT(unknown_warning({{"train", 0.0}, {"valid", 0.051}}, settings),
              AllOf(testing::StartsWith("0 % of the targets of train are <unk>, 5.1 % of valid: "),
                    testing::EndsWith(": data: {tokenizer: bpe, vocabulary: 10000}")));
  settings.set("vocabulary", std::int64_t{256});
  settings.set("layout", std::string("published"));
  EXPECT_THAT(unknown_warning({{"test", 1.0}}, settings),
              testing::EndsWith("{tokenizer: bpe, vocabulary: 2000, layout: standard}"));
}

TEST(TextForm, PromptsAndTextsOfWords) {
  const auto words = tokenizers().at("word").make();
  const TextForm form(words.read("<unk>\n<eos>\na\nb\nc\n", false), /*published=*/false);
  EXPECT_THAT(form.prompt(" b d\na"), ElementsAre(1, 3, 0, 2));
  EXPECT_THAT(form.prompt(""), ElementsAre(1));
  EXPECT_EQ(form.text({1, 3, 0, 1, 2}), "\n b <unk> \n a");
  EXPECT_EQ(form.vocabulary(), 5);
  const TextForm published(words.read("<pad>\n<unk>\n<eos>\na\nb\nc\n", true), true);
  EXPECT_THAT(published.prompt("b a"), ElementsAre(4, 3));
  EXPECT_THAT(published.prompt(""), ElementsAre());
  EXPECT_EQ(published.special().pad, 0);
}

TEST(TextForm, PromptsAndTextsOfBytes) {
  const TextForm form(tokenizers().at("byte").make().read({}, false), /*published=*/false);
  EXPECT_THAT(form.prompt("b\xc3"), ElementsAre('\n', 'b', 0xc3));
  EXPECT_EQ(form.text({'\n', 'b', 0xc3}), "\nb\xc3");
  EXPECT_EQ(form.vocabulary(), 256);
  EXPECT_EQ(form.special().unknown, -1);
}

TEST(PublishedLayout, HalfOverlappingWindowsInLongLines) {
  // Lines of 4 words give nothing at L = 4; 5 words one window; 7 words start at 0 and 2; 8 words
  // also only at 0 and 2, since no word follows a window from 4.
  const std::string five = "a b c d e\n";
  const std::string seven = "a b c d e f g\n";
  const std::string eight = "a b c d e f g h\n";
  const Corpus corpus = corpus_of({"a b c d\n" + seven + eight, five, five + five}, 4,
                                  {{"layout", std::string("published")}});
  EXPECT_THAT(corpus.train.starts, ElementsAre(0, 2, 7, 9));
  EXPECT_EQ(corpus.train.tokens.size(), 15U);
  EXPECT_THAT(corpus.valid.starts, ElementsAre(0));
  EXPECT_THAT(corpus.test.starts, ElementsAre(0, 5));
  EXPECT_EQ(corpus.train.shift, 1);
  EXPECT_EQ(corpus.bytes_per_token, 0.0);
}

TEST(PublishedLayout, LastTargetIsPad) {
  const Corpus corpus = corpus_of({"a b c d e\n", "a b x d e\n", "e d c b a\n"}, 4,
                                  {{"layout", std::string("published")}});
  EXPECT_EQ(corpus.special.pad, 0);
  const auto window = read_window(corpus.valid, 0);
  EXPECT_THAT(window.input, ElementsAre(3, 4, 1, 6));  // x is unknown
  EXPECT_THAT(window.target, ElementsAre(4, 1, 6, 0));
  EXPECT_EQ(corpus.valid.num_scored(), 4);
}

TEST(PublishedLayout, RefusesTextWithoutLongLines) {
  EXPECT_EQ(error_of([] {
              corpus_of({"a b c d e\n", "a b c\n", "a b c d e\n"}, 4,
                        {{"layout", std::string("published")}});
            }),
            "test: the valid split has no line of more than 4 words (the context), which layout = "
            "published needs");
}

TEST(ByteUnit, IdsAreBytes) {
  const Corpus corpus = corpus_of({"ab\n", "b\xc3\xa9\n", "a"}, 2, {{"unit", std::string("byte")}});
  EXPECT_EQ(corpus.vocabulary, 256);
  EXPECT_EQ(corpus.special.unknown, -1);
  EXPECT_THAT(corpus.train.tokens, ElementsAre('\n', 'a', 'b', '\n'));
  EXPECT_THAT(corpus.valid.tokens, ElementsAre('\n', 'b', 0xc3, 0xa9, '\n'));
  EXPECT_EQ(corpus.valid.num_scored(), 4);
  EXPECT_EQ(corpus.unit, "byte");
  EXPECT_EQ(corpus.tokenizer->file(), "");
  EXPECT_EQ(corpus.bytes_per_token, 1.0);
}

TEST(ByteUnit, TakesNoMoreMemoryThanItsTokens) {
  const std::string text(5000, 'a');  // beyond 4096: doubled, there would be room for 8192
  const Corpus corpus = corpus_of({text, text, text}, 2, {{"unit", std::string("byte")}});
  for (const auto* windows : {&corpus.train, &corpus.valid, &corpus.test}) {
    EXPECT_EQ(windows->tokens.capacity(), windows->tokens.size());
    EXPECT_EQ(windows->tokens.size(), text.size() + 1);
  }
}

TEST(WordUnit, TakesNoMoreMemoryThanItsTokens) {
  std::string text;
  for (int i = 0; i < 1200; ++i) text += "a b c\n";
  text += "a b";  // published, lines of so few words are left out
  for (const std::string layout : {"standard", "published"}) {
    const Corpus corpus = corpus_of({text, text, text}, 2, {{"layout", layout}});
    const std::size_t tokens = layout == "standard" ? 4804U : 3600U;
    for (const auto* windows : {&corpus.train, &corpus.valid, &corpus.test}) {
      EXPECT_EQ(windows->tokens.size(), tokens) << layout;
      EXPECT_EQ(windows->tokens.capacity(), tokens) << layout;
    }
  }
}

TEST(ByteUnit, RefusesThePublishedLayout) {
  EXPECT_EQ(
      error_of([] {
        corpus_of(kTexts, 2, {{"unit", std::string("byte")}, {"layout", std::string("published")}});
      }),
      "data.layout = published, must be standard where data.unit = byte");
}

TEST(TextCorpus, RefusesAnEmptySplit) {
  EXPECT_EQ(error_of([] {
              corpus_of({"a\n", "", "b\n"}, 2);
            }),
            "test: the valid split has no text");
  EXPECT_EQ(error_of([] {
              corpus_of({"", "a\n", "b\n"}, 2);
            }),
            "test: the train split has no text");
  EXPECT_EQ(error_of([] { corpus_of({"a\n", "b\n", ""}, 2); }), "test: the test split has no text");
  for (const auto* blank : {"\n\n\n", "<unk> \n <unk>\n"}) {
    EXPECT_EQ(error_of([&] {
                corpus_of({blank, "b\n", "c\n"}, 2);
              }),
              "test: the train split has no word but <unk>");
  }
}

TEST(TextCorpus, RefusesAContextBelowTwo) {
  EXPECT_THAT(error_of([] { corpus_of(kTexts, 1); }),
              HasSubstr("model.context = 1, must be in [2"));
}

TEST(TextCorpus, HashDependsOnTheTextAndOnNothingElse) {
  const std::string hash = corpus_of(kTexts, 2).hash;
  EXPECT_EQ(hash, corpus_of(kTexts, 2).hash);
  EXPECT_NE(hash, corpus_of(kTexts, 3).hash);
  SplitTexts other = kTexts;
  other.test = "b\n";
  EXPECT_NE(hash, corpus_of(other, 2).hash);
}

TEST(TextCorpus, DescribesItself) {
  EXPECT_EQ(corpus_of(kTexts, 2).description, "a text; 5 words, standard layout, windows of 2");
  EXPECT_EQ(corpus_of(kTexts, 2).name, "test");
}

}  // namespace
}  // namespace nas
