#include <chrono>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "data/corpus_facts.hpp"
#include "data/text.hpp"
#include "data_fixture.hpp"
#include "prelude.hpp"

namespace nas {
namespace {

using ::testing::Contains;

TEST(Corpora, DescriptionsAreComplete) {
  for (const auto& key : corpora().keys()) {
    const auto& description = corpora().at(key).description;
    EXPECT_EQ(description.key, key);
    EXPECT_NE(description.summary, "");
    for (const auto& setting : description.settings) {
      EXPECT_NE(setting.help, "") << setting.name;
      EXPECT_EQ(setting.violation(setting.default_value), "") << setting.name;
    }
  }
}

TEST(Texts, RecordsHaveOneNameOfATokenizerAndWhatIsNotDefault) {
  Parameters settings(text_settings("byte"));
  const auto recorded = [&] { return recorded_settings(settings).dump(); };
  EXPECT_EQ(recorded(), R"({"layout":"standard","unit":"byte","vocabulary":10000})");
  settings.set("coverage", 0.5);
  settings.set("tokenizer", std::string("unit"));
  EXPECT_EQ(recorded(), R"({"coverage":0.5,"layout":"standard","unit":"word","vocabulary":10000})");
  settings.set("coverage", 1.0);
  settings.set("tokenizer", std::string("a/b.json"));
  EXPECT_EQ(recorded(), R"({"layout":"standard","tokenizer_file":"a/b.json","unit":"bpe",)"
                        R"("vocabulary":10000})");
}

TEST(Texts, ATokenizerIsAKeyOrAFile) {
  const auto all = text_settings();
  const auto& tokenizer = *std::find_if(
      all.begin(), all.end(), [](const Setting& setting) { return setting.name == "tokenizer"; });
  EXPECT_EQ(tokenizer.violation(std::string("bpe")), "");
  EXPECT_EQ(tokenizer.violation(std::string("my/tokenizer.json")), "");
  EXPECT_EQ(tokenizer.violation(std::string("words")),
            "must be one of unit, bpe, byte, char, residue, word, or NAME.json; did you mean "
            "word?");
}

/// A text of a data folder of its own, and what is kept of it there.
class TextFile : public ::testing::Test {
 protected:
  TextFile() {
    std::string text;
    for (int i = 0; i < 10; ++i) text += "a b c d\n";  // 8 bytes a line, so cuts at 48 and 64
    path_ = folder_.write("my.txt", text).string();
  }
  Corpus make(std::initializer_list<std::pair<std::string, Value>> changes) {
    return make_corpus("text_file", 4, changes, {.folder = folder_.path() / "data"});
  }
  std::string error(std::initializer_list<std::pair<std::string, Value>> changes) {
    return error_of([&] { make(changes); });
  }

  TemporaryFolder folder_;
  std::string path_;
};

TEST_F(TextFile, IsCutAtLineEndsAndReadAgainWhereItIsKept) {
  const auto make_it = [this] {
    return make({{"path", path_}, {"valid_share", 0.25}, {"test_share", 0.15}});
  };
  const auto corpus = make_it();
  EXPECT_EQ(corpus.name, "text_file");
  EXPECT_EQ(corpus.train.tokens.size(), 1U + 7 * 5);  // byte 48 lies in line 7
  EXPECT_EQ(corpus.valid.num_scored(), 2 * 5);
  EXPECT_EQ(corpus.test.num_scored(), 1 * 5);
  EXPECT_EQ(corpus.description, path_ + "; 6 words, standard layout, windows of 4");
  EXPECT_EQ(corpus.tokenizer, "<unk>\n<eos>\na\nb\nc\nd\n");

  const auto kept = folder_.path() / "data/.prepared";
  ASSERT_EQ(num_entries(kept), 1U);
  const auto card = fs::directory_iterator(kept)->path() / "card.json";
  const auto time = fs::last_write_time(card) - std::chrono::hours(1);
  fs::last_write_time(card, time);
  EXPECT_EQ(make_it().hash, corpus.hash);
  EXPECT_EQ(fs::last_write_time(card), time) << "it was prepared again";
  folder_.write("my.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
  EXPECT_NE(make_it().hash, corpus.hash);
  EXPECT_EQ(num_entries(kept), 2U);
}

TEST_F(TextFile, OfThreeFilesInTheLayoutOfThePaper) {
  const auto train = folder_.write("a", "a b c d e\na b\n").string();
  const auto other = folder_.write("b", "c b a x e\n").string();
  const auto corpus = make(
      {{"train", train}, {"valid", other}, {"test", other}, {"layout", std::string("published")}});
  EXPECT_THAT(corpus.train.tokens, ElementsAre(3, 4, 5, 6, 7));
  EXPECT_THAT(corpus.test.tokens, ElementsAre(5, 4, 3, 1, 7));
  EXPECT_EQ(corpus.special.pad, 0);
}

TEST_F(TextFile, WhatPythonRefusesIsRefusedInItsWords) {
  EXPECT_EQ(error({}),
            "text_file: data.path = '', train = '', valid = '', test = '', must be path alone, or "
            "train, valid and test without path");
  EXPECT_EQ(error({{"path", std::string("/no/such")}}), "/no/such: cannot be read");
  EXPECT_EQ(error({{"path", std::string("/dev/zero")}}),
            "/dev/zero: is a device, must be a text file")
      << "it has no end";
  EXPECT_EQ(error({{"path", path_}, {"valid_share", 0.5}, {"test_share", 0.5}}),
            "data.valid_share + data.test_share = 1, must be less than 1");
  EXPECT_EQ(
      error({{"path", path_}, {"unit", std::string("byte")}, {"layout", std::string("published")}}),
      "data.layout = published, must be standard where data.unit = byte");
  for (const std::string key : {"wikitext-2", "fashion_mnist"}) {
    EXPECT_THAT(error_of([&] { make_corpus(key, 196, {}, {.folder = folder_.path()}); }),
                HasSubstr("nas-data get " + key))
        << "never other text";
  }
}

TEST_F(TextFile, WhatKeepsPythonFromItIsSaid) {
  ASSERT_EQ(setenv("NAS_PYTHON", "/no/such", 1), 0);
  EXPECT_THAT(error({{"path", path_}}),
              StartsWith("text_file: NAS_PYTHON = /no/such prepares texts and does not run: "));
  ASSERT_EQ(setenv("NAS_PYTHON", "false", 1), 0);
  EXPECT_EQ(message_of<MachineError>([&] {
              make({{"path", path_}});
            }),
            "text_file: Python ends with code 1: ");
  unsetenv("NAS_PYTHON");
}

bool have(const std::string& name) {
  const char* folder = std::getenv("NAS_DATA_DIR");
  return folder != nullptr && fs::is_directory(fs::path(folder) / name);
}

// The published pipeline on the real text: window counts, shares of <UNK> and unigram perplexity.
TEST(WikiText2, PublishedLayout) {
  if (!have("wikitext-2")) GTEST_SKIP() << "NAS_DATA_DIR does not hold wikitext-2";
  const Corpus corpus = make_corpus("wikitext-2", 128, {{"layout", std::string("published")}});
  EXPECT_EQ(corpus.vocabulary, 10000);
  EXPECT_EQ(corpus.train.size(), 10622);
  EXPECT_EQ(corpus.valid.size(), 1079);
  EXPECT_EQ(corpus.test.size(), 1208);
  EXPECT_NEAR(corpus.unigram_perplexity, 501.29, 0.005);
  const auto unknown = unknown_shares(corpus);  // each 128th target is <pad>
  EXPECT_NEAR(unknown.at("train") * 128 / 127, 0.096, 0.0005);
  EXPECT_NEAR(unknown.at("valid") * 128 / 127, 0.115, 0.001);
}

TEST(WikiText2, StandardLayoutScoresThePublishedNumberOfTokens) {
  if (!have("wikitext-2")) GTEST_SKIP() << "NAS_DATA_DIR does not hold wikitext-2";
  const Corpus corpus = make_corpus("wikitext-2", 128, {{"vocabulary", std::int64_t{0}}});
  EXPECT_EQ(corpus.vocabulary, 33278);
  EXPECT_EQ(corpus.train.tokens.size(), 1U + 2088628);
  EXPECT_EQ(corpus.valid.num_scored(), 217646);
  EXPECT_EQ(corpus.test.num_scored(), 245569);
  EXPECT_EQ(corpus.train.shift, 128);
  // Without smoothing 965.09; every word of valid stands in train.
  EXPECT_NEAR(corpus.unigram_perplexity, 965.09, 5.0);
}

TEST(Brown, RealText) {
  if (!have("brown")) GTEST_SKIP() << "NAS_DATA_DIR does not hold brown";
  // 14,114 ids without <eos>: the words of more than 3 occurrences in train, and <unk>.
  const Corpus corpus = make_corpus("brown", 128, {{"vocabulary", std::int64_t{14115}}});
  EXPECT_EQ(corpus.vocabulary, 14115);
  const auto unknown = [&](const Windows& windows) {
    return static_cast<double>(
        std::count(windows.tokens.begin(), windows.tokens.end(), corpus.special.unknown));
  };
  EXPECT_NEAR(unknown(corpus.train) / 800'000, 0.058, 0.0005);
  EXPECT_NEAR(unknown(corpus.valid) / 200'000, 0.093, 0.0005);
  EXPECT_NEAR(unknown(corpus.test) / 161'192, 0.092, 0.0005);
}

}  // namespace
}  // namespace nas
