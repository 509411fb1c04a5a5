#include <array>
#include <cmath>
#include <fstream>
#include <numbers>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/describe.hpp"
#include "core/temporary_folder.hpp"
#include "data/byte_pairs.hpp"
#include "data/corpus_facts.hpp"
#include "data/normalization.hpp"
#include "data/text.hpp"
#include "data/unicode.hpp"
#include "data_fixture.hpp"

namespace nas {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

using Changes = std::initializer_list<std::pair<std::string, Value>>;

Parameters settings_of(const std::string& unit, Changes changes = {}) {
  Parameters settings(corpora().at("text_file").description.settings);
  settings.set("unit", unit);
  for (const auto& [name, value] : changes) settings.set(name, value);
  return settings;
}

std::shared_ptr<const Tokenizer> trained(const std::string& unit, std::string_view text,
                                         Changes changes = {}) {
  return tokenizers().at(unit).make().train(text, settings_of(unit, changes));
}

std::vector<std::int64_t> ids_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::int32_t> ids;
  tokenizer.encode(text, ids);
  return {ids.begin(), ids.end()};
}

/// Characters of many scripts, with marks, ends of lines and white space.
std::string drawn_text(std::mt19937& engine, int most) {
  constexpr std::array<std::pair<char32_t, char32_t>, 14> kScripts{{{0x20, 0x7E},
                                                                    {0x20, 0x7E},
                                                                    {0x09, 0x0D},
                                                                    {0xA0, 0x24F},
                                                                    {0x300, 0x36F},
                                                                    {0x370, 0x52F},
                                                                    {0x5D0, 0x6FF},
                                                                    {0x900, 0x97F},
                                                                    {0xE00, 0xE5B},
                                                                    {0x1100, 0x11FF},
                                                                    {0x3041, 0x30FF},
                                                                    {0x4E00, 0x9FFF},
                                                                    {0xAC00, 0xD7A3},
                                                                    {0x1F600, 0x1F64F}}};
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(engine);
  };
  std::string text;
  for (auto left = below(static_cast<std::size_t>(most)); left > 0; --left) {
    const auto [first, last] = kScripts.at(below(kScripts.size()));
    text += utf8(first + static_cast<char32_t>(below(last - first + 1)));
  }
  return text;
}

TEST(Tokenizers, AreKnownByTheirNames) {
  for (const auto* key : {"bpe", "byte", "char", "residue", "word"}) {
    EXPECT_THAT(tokenizers().keys(), Contains(key));
  }
  EXPECT_THAT(error_of([] { (void)tokenizers().at("bytes"); }),
              HasSubstr("unknown tokenizer 'bytes', known: "));
}

TEST(Tokenizers, TenThousandStringsOfManyScriptsComeBack) {
  std::mt19937 engine(7);
  std::string all;
  std::vector<std::string> texts;
  for (int i = 0; i < 10'000; ++i) texts.push_back(drawn_text(engine, 24));
  for (const auto& text : texts) all += text;
  for (const auto& [unit, size] : {std::pair("byte", 0), {"char", 0}, {"bpe", 2000}}) {
    const auto tokenizer = trained(unit, all, {{"vocabulary", std::int64_t{size}}});
    const auto again = tokenizers().at(unit).make().read(tokenizer->file(), false);
    EXPECT_EQ(again->size(), tokenizer->size()) << unit;
    EXPECT_EQ(again->file(), tokenizer->file()) << unit;
    for (const auto& text : texts) {
      const auto ids = ids_of(*tokenizer, text);
      ASSERT_EQ(tokenizer->decode(ids), std::string_view(unit) == "char" ? nfc(text) : text);
      ASSERT_EQ(ids_of(*again, text), ids) << unit << ": " << text;
    }
  }
}

TEST(Tokenizers, BytesThatAreNoTextComeBack) {
  std::mt19937 engine(11);
  const auto pairs = trained("bpe", "the cat and the rat and the bat", {});
  for (int i = 0; i < 1000; ++i) {
    std::string bytes;
    for (int n = 0; n < 20; ++n) bytes += static_cast<char>(engine() & 0xFFU);
    ASSERT_EQ(pairs->decode(ids_of(*pairs, bytes)), bytes);
  }
}

TEST(Char, ByFallingCountTiesByCodePoint) {
  const auto tokenizer = trained("char", "bé\xE6\x97\xA5 a a a éé\n");
  EXPECT_EQ(tokenizer->size(), 7);  // <unk>, blank, a, é, \n, b, 日
  EXPECT_THAT(ids_of(*tokenizer, "aé b\nx\xFF"), ElementsAre(2, 3, 1, 5, 4, 0, 0));
  EXPECT_EQ(tokenizer->decode({2, 3, 0}), "aé<unk>");
  EXPECT_EQ(tokenizer->special().unknown, 0);
  EXPECT_EQ(tokenizer->first(), 4);
  EXPECT_EQ(trained("char", "aaaabbc", {{"coverage", 0.8}})->size(), 3);
  EXPECT_EQ(trained("char", "aaaabbc", {{"vocabulary", std::int64_t{2}}})->size(), 2);
  EXPECT_EQ(error_of([] {
              trained("char", "a", {{"vocabulary", std::int64_t{1}}});
            }),
            "data.vocabulary = 1, must be 0 (every character) or at least 2");
}

TEST(Char, LettersAreWrittenInOneWay) {
  const auto tokenizer =
      trained("char", "e\xCC\x81 \xE2\x84\xAA");  // e with U+0301, the kelvin sign
  EXPECT_EQ(tokenizer->size(), 4);                // <unk>, é, blank, K
  EXPECT_EQ(ids_of(*tokenizer, "é"), ids_of(*tokenizer, "e\xCC\x81"));
  EXPECT_EQ(tokenizer->decode(ids_of(*tokenizer, "e\xCC\x81K")), "éK");
  const auto again = tokenizers().at("char").make().read(tokenizer->file(), false);
  EXPECT_EQ(ids_of(*again, "e\xCC\x81"), ids_of(*tokenizer, "é"));
}

TEST(Char, OlderFilesTakeCharactersAsTheyStand) {
  auto json = nlohmann::json::parse(trained("char", "é")->file());
  const auto read = [&] { return tokenizers().at("char").make().read(json.dump(), false); };
  json["normalizer"] = nullptr;
  EXPECT_THAT(ids_of(*read(), "e\xCC\x81"), ElementsAre(0, 0));
  json["normalizer"] = {{"type", "NFKC"}};
  EXPECT_THAT(error_of([&] { read(); }), HasSubstr("must be null or of type NFC"));
}

TEST(Nfc, IsTheShortestWayToWriteALetter) {
  const auto normal = [](std::u32string_view given) {
    std::string text;
    for (const auto code : given) text += utf8(code);
    return nfc(text);
  };
  const auto text = [](std::u32string_view given) {
    std::string joined;
    for (const auto code : given) joined += utf8(code);
    return joined;
  };
  EXPECT_EQ(nfc("plain\nascii"), "plain\nascii");
  EXPECT_EQ(normal(U"A\u030A"), text(U"\u00C5"));
  EXPECT_EQ(normal(U"\u212B"), text(U"\u00C5"));                  // sign of angstrom
  EXPECT_EQ(normal(U"q\u0307\u0323x"), text(U"q\u0323\u0307x"));  // marks in order of their classes
  EXPECT_EQ(normal(U"a\u0323\u0302"), text(U"\u1EAD"));           // in two steps
  EXPECT_EQ(normal(U"a\u0302\u0323"), text(U"\u1EAD"));
  EXPECT_EQ(normal(U"a\u0345\u0301"), text(U"\u00E1\u0345"));   // over a mark of another class
  EXPECT_EQ(normal(U"a\u0305\u0301"), text(U"a\u0305\u0301"));  // not over one of the same
  EXPECT_EQ(normal(U"\u0958"), text(U"\u0915\u093C"));          // excluded from composition
  EXPECT_EQ(normal(U"\u0344"), text(U"\u0308\u0301"));
  EXPECT_EQ(normal(U"\u0301a"), text(U"\u0301a"));  // a mark without a letter
  EXPECT_EQ(normal(U"\u1112\u1161\u11AB\u1100\u1173\u11AF"), text(U"\uD55C\uAE00"));  // Hangul
  EXPECT_EQ(normal(U"\uAC00\u11A8"), text(U"\uAC01"));
  EXPECT_EQ(normal(U"\uF900"), text(U"\u8C48"));
  EXPECT_EQ(nfc("e\xCC\x81\xFF\xCC\x81"), "é\xFF\xCC\x81");  // not over foreign bytes
  EXPECT_EQ(nfc(""), "");
}

TEST(Residue, LettersOfTheAlphabet) {
  const auto tokenizer = trained("residue", "");
  EXPECT_EQ(tokenizer->size(), 22);
  EXPECT_THAT(ids_of(*tokenizer, "ACY\nXa"), ElementsAre(2, 3, 21, 1, 0, 0));
  EXPECT_EQ(trained("residue", "", {{"alphabet", std::string("ACGT")}})->size(), 6);
  EXPECT_THAT(error_of([] {
                trained("residue", "", {{"alphabet", std::string("ACA")}});
              }),
              HasSubstr("data.alphabet = 'ACA': character 3, must be a letter that is there once"));
  EXPECT_THAT(error_of([] {
                trained("residue", "", {{"alphabet", std::string()}});
              }),
              HasSubstr("must have a letter"));
}

std::vector<std::string> pretokens(std::string_view text, PretokenRule rule) {
  std::vector<std::string> parts;
  for_each_pretoken(text, rule, [&](std::string_view part) { parts.emplace_back(part); });
  return parts;
}

TEST(Pretokens, OfGpt2) {
  const auto cut = [](std::string_view text) { return pretokens(text, PretokenRule::gpt2); };
  EXPECT_THAT(cut("It's 2024, isn't it?"),
              ElementsAre("It", "'s", " 2024", ",", " isn", "'t", " it", "?"));
  EXPECT_THAT(cut("a  b\n\n c "), ElementsAre("a", " ", " b", "\n\n", " c", " "));
  EXPECT_THAT(cut("  "), ElementsAre("  "));
  EXPECT_THAT(cut("été ½x 日本"), ElementsAre("été", " ½", "x", " 日本"));
  EXPECT_THAT(cut("a\xC2\xA0\xC2\xA0z'S"), ElementsAre("a", "\xC2\xA0", "\xC2\xA0", "z", "'", "S"));
  EXPECT_THAT(cut("a\xFF\xFE b"), ElementsAre("a", "\xFF\xFE", " b"));
}

TEST(Pretokens, OfCl100k) {
  const auto cut = [](std::string_view text) { return pretokens(text, PretokenRule::cl100k); };
  EXPECT_THAT(cut("It'S 12345, (isn't) it?!\n\n x"),
              ElementsAre("It", "'S", " ", "123", "45", ",", " (", "isn", "'t", ")", " it",
                          "?!\n\n", " x"));
  EXPECT_THAT(cut("a \n \n  b\n  "), ElementsAre("a", " \n \n", " ", " b", "\n  "));
  EXPECT_THAT(cut("\tx"), ElementsAre("\tx"));
}

TEST(BytePairs, TiesGoToTheLowestIds) {
  // ab and bc are there twice each: a b comes first, since a has the lower id; then ab c.
  const auto pairs = train_byte_pairs("abc abc", 0, PretokenRule::gpt2);
  const auto json = nlohmann::json::parse(pairs->file());
  EXPECT_EQ(json.at("model").at("merges").dump(), R"([["a","b"],["ab","c"]])");
  EXPECT_THAT(ids_of(*pairs, "abc abcab"), ElementsAre(257, 220, 257, 256));
  EXPECT_EQ(pairs->size(), 258);
  EXPECT_EQ(pairs->first(), 198);  // as in GPT-2
}

TEST(BytePairs, OverlappingPairsAndLongPretokens) {
  const auto pairs = train_byte_pairs("aaaa aaaa", 0, PretokenRule::gpt2);
  EXPECT_EQ(nlohmann::json::parse(pairs->file()).at("model").at("merges").dump(),
            R"([["a","a"],["aa","aa"]])");
  const std::string text(100'003, 'a');
  const auto ids = ids_of(*pairs, text);
  EXPECT_EQ(ids.size(), 25'002U);  // 25,000 of four, one of two, one of one
  EXPECT_EQ(pairs->decode(ids), text);
}

/// Joins by looking through all pairs again and again, as the definition says.
std::vector<std::string> joined_slowly(std::string_view pretoken, const nlohmann::json& merges) {
  std::vector<std::string> parts;
  for (const char c : pretoken) parts.emplace_back(1, c);
  for (bool more = true; more;) {
    more = false;
    for (const auto& merge : merges) {
      for (std::size_t i = 0; i + 1 < parts.size() && !more; ++i) {
        if (parts[i] != merge[0] || parts[i + 1] != merge[1]) continue;
        parts[i] += parts[i + 1];
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        more = true;
      }
      if (more) break;
    }
  }
  return parts;
}

TEST(BytePairs, JoinTheLowestRankFirst) {
  std::mt19937 engine(3);
  const auto word = [&] {
    std::string text;
    for (auto left = 1 + engine() % 12; left > 0; --left)
      text += static_cast<char>('a' + engine() % 4);
    return text;
  };
  std::string text;
  for (int i = 0; i < 500; ++i) text += word() + "x";
  const auto pairs = train_byte_pairs(text, 340, PretokenRule::gpt2);
  EXPECT_EQ(pairs->size(), 340);
  const auto merges = nlohmann::json::parse(pairs->file()).at("model").at("merges");
  for (int i = 0; i < 200; ++i) {
    const auto one = word() + "x" + word();
    std::vector<std::string> parts;
    for (const auto id : ids_of(*pairs, one)) parts.push_back(pairs->decode({id}));
    EXPECT_EQ(parts, joined_slowly(one, merges)) << one;
  }
}

TEST(BytePairs, FilesOfOthers) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder.path() / name) << text;
    return folder.path() / name;
  };
  const auto own = train_byte_pairs("low lower lowest low", 262, PretokenRule::gpt2);
  const auto json = nlohmann::json::parse(own->file());
  auto vocab = json.at("model").at("vocab");
  vocab["<|endoftext|>"] = own->size();
  std::string merges = "#version: 0.2\n";
  for (const auto& merge : json.at("model").at("merges")) {
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  }
  write("merges.txt", merges);
  const auto published = read_byte_pairs_file(write("vocab.json", vocab.dump()));
  EXPECT_EQ(published->size(), own->size() + 1);
  EXPECT_EQ(ids_of(*published, "the lowest"), ids_of(*own, "the lowest"));
  EXPECT_EQ(published->decode({own->size()}), "<|endoftext|>");

  std::string ranks;  // bytes 0 .. 255 and "ab"
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (unsigned byte = 0; byte < 256; ++byte) {
    ranks += {digits[byte >> 2U], digits[(byte & 3U) << 4U]};
    ranks += "== " + std::to_string(byte) + "\n";
  }
  const auto tiktoken = read_byte_pairs_file(write("small.tiktoken", ranks + "YWI= 256\n"));
  EXPECT_THAT(ids_of(*tiktoken, "abca"), ElementsAre(256, 'c', 'a'));
  EXPECT_THAT(error_of([&] { read_byte_pairs_file(write("bad.tiktoken", "YWI= 7\n")); }),
              HasSubstr("bad.tiktoken: line 'YWI= 7', must be a token in base64, a blank and 0"));
  EXPECT_THAT(error_of([&] { read_byte_pairs_file(folder.path() / "no.json"); }),
              HasSubstr("no.json"));
}

TEST(BytePairs, RefuseWhatTheyDoNotUnderstand) {
  const auto json = nlohmann::json::parse(trained("bpe", "abab")->file());
  const auto refused = [&](const std::string& path, const nlohmann::json& value) {
    auto changed = json;
    changed[nlohmann::json::json_pointer(path)] = value;
    return error_of([&] { read_byte_pairs(changed.dump()); });
  };
  EXPECT_THAT(refused("/normalizer", {{"type", "NFC"}}), HasSubstr("normalizer = "));
  EXPECT_THAT(refused("/model/type", "Unigram"), HasSubstr("model.type = Unigram, must be BPE"));
  EXPECT_THAT(refused("/model/byte_fallback", true), HasSubstr("byte_fallback = true"));
  EXPECT_THAT(refused("/pre_tokenizer/add_prefix_space", true), HasSubstr("pre_tokenizer = "));
  EXPECT_THAT(refused("/model/merges/0", "a zz"), HasSubstr("merge of 'zz', which is no token"));
  EXPECT_THAT(refused("/model/vocab/a", 7), HasSubstr("is of two tokens"));
  EXPECT_THAT(refused("/model/vocab/a", -1), HasSubstr("must be an integer >= 0"));
  EXPECT_THAT(refused("/model/vocab/ab", 300), HasSubstr("has no token of id"));
  EXPECT_THAT(error_of([] { read_byte_pairs("{"); }), HasSubstr("is no tokenizer.json"));
  EXPECT_THAT(error_of([] {
                trained("bpe", "a", {{"vocabulary", std::int64_t{256}}});
              }),
              HasSubstr("data.vocabulary = 256, must be 0"));
}

/// Bits of a text by the add-one unigram model of its own tokens, over its bytes.
double unigram_bits_per_byte(const Corpus& corpus) {
  return std::log2(corpus.unigram_perplexity) / corpus.bytes_per_token;
}

TEST(TextCorpus, BitsPerByteAreOfTheSameBytes) {
  std::mt19937 engine(5);
  std::string text;
  for (int i = 0; i < 2000; ++i) text += drawn_text(engine, 12) + (i % 9 == 8 ? "\n" : " ");
  text += "\n";
  for (const auto* unit : {"byte", "char", "bpe"}) {
    const auto corpus = text_corpus("test", "a text", {text, text, text}, settings_of(unit), 16);
    const auto targets = static_cast<double>(corpus.valid.num_scored());
    EXPECT_NEAR(targets * corpus.bytes_per_token, static_cast<double>(text.size()), 1e-6) << unit;
    const double nll = targets * std::log(corpus.unigram_perplexity);
    EXPECT_NEAR(unigram_bits_per_byte(corpus),
                nll / std::numbers::ln2 / static_cast<double>(text.size()), 1e-9)
        << unit;
    EXPECT_EQ(count_targets(corpus.valid, corpus.special.unknown), 0) << unit;
  }
}

TEST(TextCorpus, TokenizersLearnFromTheTrainingSplitAlone) {
  const auto corpus =
      text_corpus("test", "a text", {"abab\n", "cdcd\n", "efef\n"}, settings_of("bpe"), 2);
  EXPECT_EQ(corpus.vocabulary, 257);
  EXPECT_EQ(corpus.description, "a text; 257 byte pairs and bytes, standard layout, windows of 2");
  const auto other = text_corpus("test", "a text", {"ab\n", "zb\n", "b\n"}, settings_of("char"), 2);
  EXPECT_THAT(other.valid.tokens, ElementsAre(1, 0, 3, 1));
}

TEST(TextCorpus, RefusesSettingsOfOtherTokenizers) {
  const auto refused = [](const std::string& unit, Changes changes) {
    return error_of([&] {
      text_corpus("test", "a text", {"a\n", "a\n", "a\n"}, settings_of(unit, changes), 2);
    });
  };
  EXPECT_EQ(refused("word", {{"coverage", 0.5}}),
            "data.coverage = 0.5, must be left out where data.unit = word: it is of char");
  EXPECT_EQ(refused("bpe", {{"layout", std::string("published")}}),
            "data.layout = published, must be standard where data.unit = bpe");
}

TEST(TextCorpus, RecordsOfWordsAndBytesAreAsBefore) {
  const Parameters before(text_settings());
  nlohmann::json expected = before;
  expected.erase("tokenizer");
  EXPECT_EQ(expected.size(), 3U);
  const auto own = settings_of("word");
  const auto recorded = recorded_settings(own);
  for (const auto& [name, value] : expected.items()) EXPECT_EQ(recorded.at(name), value) << name;
  for (const auto& setting : tokenizer_settings()) EXPECT_FALSE(recorded.contains(setting.name));
  const auto characters = recorded_settings(
      settings_of("word", {{"tokenizer", std::string("char")}, {"coverage", 0.5}}));
  EXPECT_EQ(characters.at("unit"), "char");
  EXPECT_FALSE(characters.contains("tokenizer"));
  EXPECT_EQ(characters.at("coverage"), 0.5);
}

TEST(TextCorpus, TokenizerIsTheUnitByAnotherName) {
  const SplitTexts texts{"ab\n", "ab\n", "ab\n"};
  const auto one = text_corpus("test", "a text", texts, settings_of("byte"), 2);
  const auto other = text_corpus("test", "a text", texts,
                                 settings_of("word", {{"tokenizer", std::string("byte")}}), 2);
  EXPECT_EQ(one.hash, other.hash);
  EXPECT_EQ(one.description, other.description);
  EXPECT_EQ(error_of([&] {
              text_corpus("test", "a text", texts,
                          settings_of("byte", {{"tokenizer", std::string("bpe")}}), 2);
            }),
            "data.unit = byte, must be left out where data.tokenizer = bpe");
}

TEST(TextCorpus, NamesOfTokenizersAreChoices) {
  for (const auto& setting : corpora().at("text_file").description.settings) {
    if (setting.name == "unit") {
      EXPECT_THAT(setting.violation(std::string("letter")),
                  HasSubstr("must be one of bpe, byte, char"));
    }
  }
}

// The tokenizer of docs/how-to/own-tokenizer.md, which has more tokens than bytes.
TEST(OwnTokenizer, IsDescribedWithItsSettings) {
  EXPECT_THAT(list_text("tokenizers"), HasSubstr("  nibble   half bytes\n"));
  EXPECT_THAT(describe_text("nibble"), HasSubstr("tokenizer nibble: half bytes\n"));
  EXPECT_THAT(describe_text("low_first"), HasSubstr("low_first"));
  EXPECT_THAT(describe_text("text_file"), HasSubstr("low_first"));
  EXPECT_THAT(describe_text("text_file"), HasSubstr("bpe, byte, char, nibble, residue, word"));
}

TEST(OwnTokenizer, IsOfACorpus) {
  const auto corpus =
      text_corpus("test", "a text", {"ab\n", "a\n", "b\n"}, settings_of("nibble"), 4);
  EXPECT_EQ(corpus.vocabulary, 16);
  EXPECT_EQ(corpus.description, "a text; 16 half bytes, standard layout, windows of 4");
  EXPECT_THAT(corpus.valid.tokens, ElementsAre(10, 6, 1, 0, 10));
  EXPECT_EQ(corpus.bytes_per_token, 0.5);
  const auto low_first = text_corpus("test", "a text", {"ab\n", "a\n", "b\n"},
                                     settings_of("nibble", {{"low_first", true}}), 4);
  EXPECT_THAT(low_first.valid.tokens, ElementsAre(0, 1, 6, 10, 0));
  EXPECT_NE(low_first.hash, corpus.hash);
  const TextForm form(low_first.tokenizer, /*published=*/false);
  EXPECT_EQ(form.text({1, 6, 10, 0}), "a\n");
}

TEST(OwnTokenizer, ItsSettingsAreRefusedOfOthersAndRecordedWhereTheyMatter) {
  EXPECT_EQ(error_of([] {
              text_corpus("test", "a text", {"a\n", "a\n", "a\n"},
                          settings_of("byte", {{"low_first", true}}), 2);
            }),
            "data.low_first = true, must be left out where data.unit = byte: it is of nibble");
  EXPECT_FALSE(recorded_settings(settings_of("nibble")).contains("low_first"));
  EXPECT_EQ(recorded_settings(settings_of("nibble", {{"low_first", true}})).at("low_first"), true);
}

}  // namespace
}  // namespace nas
