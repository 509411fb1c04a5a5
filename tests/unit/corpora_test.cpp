#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "data/corpus_facts.hpp"
#include "data/data_set.hpp"
#include "data_fixture.hpp"
#include "places.hpp"
#include "unit/forked.hpp"
#include "unit/full_disk.hpp"

namespace nas {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kPublished = "published";
constexpr std::int64_t kMB = 1'000'000;

TEST(Corpora, KeysAreFileStems) {
  std::set<std::string> stems;
  for (const auto& entry : fs::directory_iterator(fs::path(source_folder()) / "src/corpora")) {
    stems.insert(entry.path().stem().string());
  }
  const auto keys = corpora().keys();
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()), stems);
  EXPECT_THAT(
      keys, ElementsAre("brown", "debian_reference_de", "debian_reference_en",
                        "debian_reference_es", "debian_reference_fr", "debian_reference_it",
                        "debian_reference_ja", "debian_reference_pt", "debian_reference_zh_cn",
                        "debian_reference_zh_tw", "enwik8", "fashion_mnist", "fortunes_zh",
                        "fuzzy_recall", "gcide", "in_context_recall", "induction", "listops",
                        "modular_count", "mqar", "noisy_recall", "parity", "proteins",
                        "selective_copying", "sqlite", "text8", "text_file", "urns", "wikitext-2"));
}

TEST(Corpora, DescriptionsAreComplete) {
  for (const auto& key : corpora().keys()) {
    const auto& description = corpora().at(key).description;
    EXPECT_EQ(description.key, key);
    EXPECT_NE(description.summary, "");
    EXPECT_EQ(fs::path(description.file).stem(), key);
    for (const auto& setting : description.settings) {
      EXPECT_NE(setting.help, "") << setting.name;
      EXPECT_EQ(setting.violation(setting.default_value), "") << setting.name;
    }
  }
}

TEST(Corpora, MissingFilesAreAnErrorAndNeverOtherText) {
  const TemporaryFolder folder;
  for (const std::string key : {"wikitext-2", "brown"}) {
    EXPECT_THAT(error_of([&] { make_corpus(key, 128, {}, {.folder = folder.path()}); }),
                HasSubstr("nas-data get " + key));
  }
}

TEST(TextFile, OneFileIsCutAtLineEnds) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 10; ++i) text += "a b c d\n";  // 8 bytes a line, so cuts at 48 and 64
  const std::string path = folder.write("my.txt", text).string();
  const Corpus corpus =
      make_corpus("text_file", 4, {{"path", path}, {"valid_share", 0.25}, {"test_share", 0.15}});
  EXPECT_EQ(corpus.train.tokens.size(), 1U + 7 * 5);  // byte 48 lies in line 7
  EXPECT_EQ(corpus.valid.num_scored(), 2 * 5);
  EXPECT_EQ(corpus.test.num_scored(), 1 * 5);
  EXPECT_THAT(corpus.description, HasSubstr(path));
}

TEST(TextFile, ThreeFiles) {
  const TemporaryFolder folder;
  const Corpus corpus = make_corpus("text_file", 4,
                                    {{"train", folder.write("a", "a b c\n").string()},
                                     {"valid", folder.write("b", "b\n").string()},
                                     {"test", folder.write("c", "c c\n").string()}});
  EXPECT_EQ(corpus.vocabulary, 5);
  EXPECT_EQ(corpus.valid.num_scored(), 2);
  EXPECT_EQ(corpus.test.num_scored(), 3);
}

TEST(TextFile, AByteOrderMarkIsNoPartOfTheFirstWordAndIsSaid) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 10; ++i) text += "a b c d\n";
  const auto corpus_of = [&](const std::string& name, const std::string& content) {
    return make_corpus("text_file", 4,
                       {{"path", folder.write(name, content).string()},
                        {"valid_share", 0.25},
                        {"test_share", 0.15}});
  };
  const Corpus plain = corpus_of("plain", text);
  const Corpus marked = corpus_of("marked", "\xef\xbb\xbf" + text);
  EXPECT_EQ(marked.hash, plain.hash);
  EXPECT_EQ(marked.vocabulary, plain.vocabulary);
  EXPECT_THAT(marked.description, HasSubstr("marked without its byte-order mark; "));
  EXPECT_THAT(plain.description, ::testing::Not(HasSubstr("mark")));
  const Corpus split = make_corpus("text_file", 4,
                                   {{"train", folder.write("a", "a b c\n").string()},
                                    {"valid", folder
                                                  .write("b",
                                                         "\xef\xbb\xbf"
                                                         "b\n")
                                                  .string()},
                                    {"test", folder.write("c", "c c\n").string()}});
  EXPECT_EQ(split.valid.tokens[1], split.train.tokens[2]);
}

TEST(TextFile, EndsOfLinesMayBeThoseOfOtherSystems) {
  const TemporaryFolder folder;
  const auto corpus_of = [&](const std::string& end) {
    std::string text;
    for (int i = 0; i < 11; ++i) text += "a b c d" + end;
    return make_corpus("text_file", 4,
                       {{"path", folder.write("my.txt", text).string()},
                        {"valid_share", 0.25},
                        {"test_share", 0.15}});
  };
  EXPECT_EQ(corpus_of("\r\n").hash, corpus_of("\n").hash) << "a \\r is no part of a word";
  EXPECT_EQ(error_of([&] { corpus_of("\r"); }),
            "text_file: data.path = " + (folder.path() / "my.txt").string() +
                " ends its lines with \\r alone, must end them with \\n: it is cut there");
}

TEST(TextFile, RefusesFilesThatDoNotFit) {
  EXPECT_EQ(error_of([] { make_corpus("text_file", 4, {}); }),
            "text_file: data.path = '', train = '', valid = '', test = '', must be path alone, or "
            "train, valid and test without path");
  EXPECT_EQ(
      error_of([] {
        make_corpus("text_file", 4, {{"path", std::string("p")}, {"test", std::string("t")}});
      }),
      "text_file: data.path = 'p', train = '', valid = '', test = 't', must be path alone, or "
      "train, valid and test without path");
  EXPECT_EQ(error_of([] {
              make_corpus("text_file", 4, {{"path", std::string("/no/such")}});
            }),
            "/no/such: cannot be read");
  EXPECT_EQ(error_of([] {
              make_corpus("text_file", 4, {{"path", std::string("/dev/zero")}});
            }),
            "/dev/zero: is a device, must be a text file")
      << "it has no end";
  const TemporaryFolder folder;
  const auto pipe = (folder.path() / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] {
              make_corpus("text_file", 4, {{"path", pipe}});
            }),
            pipe + ": is a pipe, must be a text file");
  const std::string path = folder.write("my.txt", "one line only\n").string();
  EXPECT_EQ(error_of([&] {
              make_corpus("text_file", 4, {{"path", path}});
            }),
            "text_file: the valid split has no text");
  EXPECT_EQ(
      error_of([&] {
        make_corpus("text_file", 4, {{"path", path}, {"valid_share", 0.5}, {"test_share", 0.5}});
      }),
      "data.valid_share + data.test_share = 1, must be less than 1");
}

/// What reading a text takes of memory, as a multiple of the text's size: words and ends of lines, or
/// bytes, have a token of four bytes each.
TEST(TextFile, MemoryIsAFewTimesTheText) {
#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)
  GTEST_SKIP() << "sanitizers have memory of their own";
#endif
  const TemporaryFolder folder;
  const auto path = folder.path() / "large.txt";
  const auto fill = [&path](std::int64_t size, const auto& word) {
    std::string text;
    for (std::int64_t i = 0; std::ssize(text) < kMB; ++i) text += word(i);
    std::ofstream file(path);
    for (std::int64_t filled = 0; filled < size; filled += std::ssize(text)) file << text;
  };
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return std::int64_t{1024} * usage.ru_maxrss;
  };
  const auto multiple = [&](const std::string& unit) {
    return testing::in_child([&] {
      const auto before = peak();
      const Corpus corpus =
          make_corpus("text_file", 128, {{"path", path.string()}, {"unit", unit}});
      if (corpus.train.tokens.empty()) return 255;
      const auto size = static_cast<std::int64_t>(fs::file_size(path));
      return static_cast<int>((peak() - before + size - 1) / size);
    });
  };
  fill(100 * kMB, [](std::int64_t i) {
    return std::to_string(10'000 + i % 5'000) + (i % 20 == 19 ? '\n' : ' ');
  });
  const int of_words = multiple("word");
  EXPECT_LE(of_words, 4);
  EXPECT_GE(of_words, 1) << "it was not measured";
  EXPECT_LE(multiple("byte"), 6);
  // As many tokens as bytes, and of training just more than 2^24: doubled, 8 times the text.
  fill(22 * kMB, [](std::int64_t i) { return std::string(i % 2 == 0 ? "a\n" : "b\n"); });
  EXPECT_LE(multiple("word"), 6);
}

/// Whether something is refused, in words that begin so, where so many bytes are all that there is.
bool refused_beyond(std::int64_t bytes, const std::string& begin,
                    const std::function<void()>& call) {
  return testing::in_child([&] {
           const rlimit limit{static_cast<rlim_t>(bytes), RLIM_INFINITY};
           setrlimit(RLIMIT_AS, &limit);
           return error_of(call).starts_with(begin) ? 0 : 1;
         }) == 0;
}

TEST(TextFile, WhatFindsNoMemoryIsRefusedBeforeItIsTaken) {
#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)
  GTEST_SKIP() << "sanitizers have memory of their own";
#endif
  const TemporaryFolder folder;
  const auto path = folder.write("large.txt", "");
  const auto refused = [&](std::int64_t size, const std::string& unit) {
    fs::resize_file(path, static_cast<std::uintmax_t>(size));  // a hole, which takes no disk
    return refused_beyond(1000 * kMB, "text_file: " + path.string() + ": at least ", [&] {
      make_corpus("text_file", 128, {{"path", path.string()}, {"unit", unit}});
    });
  };
  EXPECT_TRUE(refused(510 * kMB, "word")) << "it is there twice when it is cut";
  EXPECT_TRUE(refused(210 * kMB, "byte"));
  // Words are counted once they are read; here each line has only its end.
  const SplitTexts texts{std::string(std::size_t{80'000'000}, '\n'), "a\n", "a\n"};
  const Parameters settings(text_settings());
  EXPECT_TRUE(refused_beyond(380 * kMB, "brown: a text with 80000007 tokens: at least ",
                             [&] { text_corpus("brown", "a text", texts, settings, 128); }));
}

// 500 made-up texts of `sentences` sentences of three tokens each, one of them holding a '/'.
void write_brown(const TemporaryFolder& folder, int sentences) {
  const std::string genres = "abcdefghijklmnopqr";
  std::string text = "\n\n";
  for (int i = 0; i < sentences; ++i) text += "\tThe/at 1/2/cd ./.\n\n";
  for (std::size_t i = 0; i < 500; ++i) {
    const std::size_t number = i / genres.size();
    const std::string digits = {static_cast<char>('0' + number / 10),
                                static_cast<char>('0' + number % 10)};
    folder.write("package/c" + genres.substr(i % genres.size(), 1) + digits, text);
  }
  folder.write("package/README", "not a text\n");
}

TEST(Brown, TagsAreStrippedAndTokensSplit) {
  const TemporaryFolder folder;
  write_brown(folder, 668);  // 500 * 668 * 3 = 1,002,000 tokens
  const DataSet set{"brown", "free", {}, ""};
  const DataLocation location{.folder = folder.path() / "data"};
  get_data_set(set, location, folder.path());
  const SplitTexts texts = read_data_set("brown", location);
  EXPECT_EQ(texts.train.substr(0, 20), "The 1/2 .\nThe 1/2 .\n");
  // 800,000 = 266,666 sentences and two tokens: the sentence across the cut becomes two lines.
  EXPECT_THAT(texts.train, ::testing::EndsWith(" .\nThe 1/2\n"));
  EXPECT_THAT(texts.valid, ::testing::StartsWith(".\nThe 1/2 .\n"));
  const auto words = [](const std::string& text) {
    return 1 + std::count(text.begin(), text.end(), ' ') +
           std::count(text.begin(), text.end(), '\n') - 1;
  };
  EXPECT_EQ(words(texts.train), 800'000);
  EXPECT_EQ(words(texts.valid), 200'000);
  EXPECT_EQ(words(texts.test), 2'000);
}

TEST(Brown, RefusesAnIncompleteCorpus) {
  const TemporaryFolder folder;
  folder.write("brown/ca01", "The/at\n");
  const DataSet set{"brown", "free", {}, ""};
  EXPECT_EQ(error_of([&] {
              get_data_set(set, {.folder = folder.path() / "data"}, folder.path() / "brown");
            }),
            "--from " + (folder.path() / "brown").string() +
                ": holds 1 texts of the Brown corpus (ca01 ... cr09), must hold 500");
}

TEST(Brown, AFullDiskIsNoFaultOfTheTexts) {
  const TemporaryFolder folder;
  write_brown(folder, 10);  // 50 KB
  const DataSet set{"brown", "free", {}, ""};
  const DataLocation location{.folder = folder.path() / "data"};
  EXPECT_EQ(
      testing::code_on_a_full_disk([&] { get_data_set(set, location, folder.path() / "package"); }),
      75);
  EXPECT_FALSE(fs::exists(location.folder));
}

bool have(const std::string& name) {
  return std::getenv("NAS_DATA_DIR") != nullptr &&
         find_data_set(name, default_data_location()).has_value();
}

// The published pipeline on the real text: window counts, shares of <UNK> and unigram perplexity.
TEST(WikiText2, PublishedLayout) {
  if (!have("wikitext-2")) GTEST_SKIP() << "NAS_DATA_DIR does not hold wikitext-2";
  const Corpus corpus = make_corpus("wikitext-2", 128, {{"layout", kPublished}});
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
