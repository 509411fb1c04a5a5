#include "data/encoding.hpp"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iconv.h>

#include "core/warning.hpp"
#include "data/text.hpp"
#include "data/vocabulary.hpp"
#include "unit/data_fixture.hpp"

namespace nas {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A sentence of a language, without an end of line.
struct Sample {
  const char* name;
  const char* text;
  bool blanks;  ///< between words
};

const std::vector<Sample>& samples() {
  static const std::vector<Sample> all{
      {"English", "The quick brown fox jumps over the lazy dog and runs away.", true},
      {"French",
       "Voil\xc3\xa0 l'\xc3\xa9t\xc3\xa9 o\xc3\xb9 les \xc3\xa9l\xc3\xa8ves re\xc3\xa7oivent un "
       "cadeau.",
       true},
      {"Russian",
       "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива.", true},
      {"Greek", "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια.", true},
      {"Hindi", "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता प्राप्त है।", true},
      {"Arabic", "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق.", true},
      {"Korean", "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.", true},
      {"Chinese",
       "人人生而自由在尊严和权利上一律平等他们赋有理性和良心并应以兄弟关系的精神相对待。", false},
      {"Japanese", "すべての人間は生まれながらにして自由でありかつ尊厳と権利とについて平等である。",
       false},
      {"Thai", "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ", false},
      {"Khmer", "មនុស្សទាំងអស់កើតមកមានសេរីភាពនិងសមភាពក្នុងសេចក្ដីថ្លៃថ្នូរនិងសិទ្ធិ", false},
      {"separated Chinese", "人人 生 而 自由 ， 在 尊严 和 权利 上 一律 平等 。", true},
      {"separated Thai", "มนุษย์ ทั้งหลาย เกิด มา มี อิสระ และ เสมอภาค กัน", true},
  };
  return all;
}

std::string repeated(const std::string& line, const std::string& end, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += line + end;
  return text;
}

/// @return a text of UTF-8 in another encoding, empty where that has not all of its characters.
std::string encoded(const std::string& text, const std::string& encoding) {
  iconv_t converter = iconv_open(encoding.c_str(), "UTF-8");
  if (converter == reinterpret_cast<iconv_t>(-1)) return {};
  std::string from = text;
  std::string to(4 * text.size() + 16, '\0');
  char* in = from.data();
  char* out = to.data();
  std::size_t in_left = from.size();
  std::size_t out_left = to.size();
  const bool whole =
      iconv(converter, &in, &in_left, &out, &out_left) != static_cast<std::size_t>(-1);
  iconv_close(converter);
  to.resize(to.size() - out_left);
  return whole ? to : "";
}

/// Files and what a corpus of them says.
class OwnText : public ::testing::Test {
 protected:
  std::string file(const std::string& content) {
    return folder_.write("own.txt", content).string();
  }
  Corpus corpus(const std::string& content, const std::string& unit) {
    warnings_.clear();
    const WarningListener listener([this](const std::string& text) { warnings_.push_back(text); });
    return make_corpus("text_file", 8,
                       {{"path", file(content)}, {"unit", unit}, {"vocabulary", std::int64_t{0}}});
  }
  std::string refusal(const std::string& content, const std::string& unit) {
    return error_of([&] { corpus(content, unit); });
  }

  TemporaryFolder folder_;
  std::vector<std::string> warnings_;
};

/// The tokens of all splits, without those that stand before them.
std::vector<std::int32_t> tokens_of(const Corpus& corpus) {
  std::vector<std::int32_t> all;
  for (const auto* split : {&corpus.train, &corpus.valid, &corpus.test}) {
    all.insert(all.end(), split->tokens.begin() + 1, split->tokens.end());
  }
  return all;
}

TEST_F(OwnText, WhatIsScoredIsTheTextGiven) {
  for (const auto& sample : samples()) {
    for (const std::string end : {"\n", "\r\n", "\n\n", " ", " \v", "\t"}) {
      for (const int times : {40, 400}) {
        SCOPED_TRACE(std::string(sample.name) + " with " + ::testing::PrintToString(end));
        const auto text = repeated(sample.text, end, times);
        const auto bytes = tokens_of(corpus(text, "byte"));
        EXPECT_EQ(std::string(bytes.begin(), bytes.end()), text);
        EXPECT_THAT(warnings_, IsEmpty());
        if (!sample.blanks) {
          EXPECT_THAT(refusal(text, "word"),
                      AllOf(HasSubstr("of a script without blanks"),
                            HasSubstr("data.tokenizer = byte, char or bpe")));
          continue;
        }
        const auto words = corpus(text, "word");
        EXPECT_THAT(warnings_, IsEmpty());
        std::string scored;
        for (const auto token : tokens_of(words)) {
          if (token != words.special.end_of_sentence) {
            scored += words.tokenizer->decode({token}) + " ";
          }
        }
        std::string given;
        for_each_word(text, [&](std::string_view word) { given += std::string(word) + " "; });
        EXPECT_EQ(scored, given);
      }
    }
  }
}

TEST_F(OwnText, SplitsHaveTheirSharesWhateverTheLines) {
  for (const auto& [words, lines] :
       {std::pair(5000, 1), {1000, 2}, {1000, 5}, {500, 11}, {5, 1000}}) {
    const auto text = repeated(repeated("word", " ", words), "\n", lines);
    for (const std::string unit : {"byte", "word"}) {
      SCOPED_TRACE(std::to_string(lines) + " lines, " + unit);
      const auto cut = corpus(text, unit);
      const auto total = static_cast<double>(cut.train.num_scored() + cut.valid.num_scored() +
                                             cut.test.num_scored());
      for (const auto* split : {&cut.valid, &cut.test}) {
        EXPECT_NEAR(static_cast<double>(split->num_scored()) / total, 0.1, 0.05);
      }
    }
  }
  const auto cut = corpus(std::string(1000, 'a'), "byte");
  EXPECT_EQ(cut.train.tokens.size(), 801U);
  EXPECT_EQ(cut.valid.tokens.size(), 101U);
}

TEST_F(OwnText, OtherEncodingsAreNamedAndRefused) {
  const std::map<std::string, std::vector<std::string>> encodings{
      {"French", {"LATIN1"}}, {"Russian", {"WINDOWS-1251", "KOI8-R", "CP866"}},
      {"Chinese", {"GBK"}},   {"Japanese", {"SHIFT-JIS", "EUC-JP", "ISO-2022-JP"}},
      {"Korean", {"EUC-KR"}},
  };
  const std::vector<std::string> wide{"UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE"};
  for (const auto& sample : samples()) {
    const auto text = repeated(sample.text, "\n", 50);
    const auto own = encodings.find(sample.name);
    if (own != encodings.end()) {
      for (const auto& name : own->second) {
        SCOPED_TRACE(std::string(sample.name) + " " + name);
        const auto other = encoded(text, name);
        ASSERT_FALSE(other.empty());
        EXPECT_THAT(refusal(other, "word"),
                    AllOf(HasSubstr("own.txt is "), HasSubstr("iconv -f " + name + " -t UTF-8")));
        const auto bytes = tokens_of(corpus(other, "byte"));
        EXPECT_EQ(std::string(bytes.begin(), bytes.end()), other);
        EXPECT_EQ(warnings_.size(), name == "ISO-2022-JP" ? 0U : 1U);
      }
    }
    for (const auto& name : wide) {
      SCOPED_TRACE(std::string(sample.name) + " " + name);
      for (const std::string mark : {"", "\xef\xbb\xbf"}) {
        const auto other = encoded(mark + text, name);
        ASSERT_FALSE(other.empty());
        const bool named =
            std::string(sample.name) != "Hindi" || !mark.empty() || name.starts_with("UTF-32");
        for (const std::string unit : {"byte", "word"}) {
          if (unit == "byte" && !named) continue;  // all its bytes are those of ASCII
          EXPECT_THAT(refusal(other, unit), HasSubstr(named ? "own.txt is " + name : "own.txt "));
        }
      }
    }
  }
  auto big5 =
      encoded(repeated("人人生而自由在尊嚴和權利上一律平等他們賦有理性和良心", "\n", 50), "BIG5");
  EXPECT_THAT(refusal(big5, "word"), HasSubstr("BIG5"));
  EXPECT_THAT(refusal(repeated("\x93quoted\x94 text of words", "\n", 50), "word"),
              HasSubstr("byte 0x93 in line 1), but probably WINDOWS-1252; must be UTF-8"));
}

TEST_F(OwnText, WhatNoReaderExpectsIsRefusedOrTold) {
  const std::string line = "a b c d e f g";
  const auto with = [&](const std::string& bytes) {
    return repeated(line, "\n", 20) + "h " + bytes + "i\n" + repeated(line, "\n", 20);
  };
  EXPECT_THAT(refusal(with(std::string(1, '\0')), "word"),
              HasSubstr("has 1 NUL bytes, the first in line 21"));
  for (const std::string end : {"\r", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xc2\x85"}) {
    EXPECT_THAT(refusal(repeated(line, end, 50), "word"), HasSubstr("must end them with \\n"));
    const auto text = repeated(line, end, 50);
    const auto bytes = tokens_of(corpus(text, "byte"));
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), text);
  }
  for (const std::string part : {"\xe2\x80\xa8", "\xef\xbb\xbf", "\xc2\xa0", "\xe3\x80\x80"}) {
    corpus(with(part), "word");
    ASSERT_EQ(warnings_.size(), 1U) << part;
    EXPECT_THAT(warnings_[0], HasSubstr("in line 21): they are parts of words"));
  }
  EXPECT_THAT(refusal("", "word"), HasSubstr("own.txt is empty"));
  EXPECT_THAT(refusal("\xef\xbb\xbf", "byte"), HasSubstr("own.txt is empty"));
  EXPECT_THAT(refusal(" \n \t\n\n  \n", "word"), HasSubstr("has no word"));
  EXPECT_THAT(refusal(std::string(5000, 'A') + "\n", "word"),
              HasSubstr("data.tokenizer = byte, char or bpe"));
  corpus(repeated(
             "This text says 人人生而自由在尊严和权利上一律平等 and then goes on in English words",
             "\n", 50),
         "word");
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_[0], HasSubstr("data.unit = byte needs no blanks"));
}

TEST(Encoding, TextsCutWithinTheirLastCharacterAreUtf8) {
  for (const auto& sample : samples()) {
    const std::string text = sample.text;
    for (std::size_t size = 1; size < text.size(); ++size) {
      EXPECT_FALSE(first_foreign_byte(std::string_view(text).substr(0, size)).has_value() &&
                   size > 3);
    }
  }
  for (const std::string bad : {"a\xc0\x80",
                                "a\xed\xa0\x80"
                                "b",
                                "a\xf5\x80\x80\x80", "a\xe2\x28\xa1", "a\x80"}) {
    EXPECT_EQ(first_foreign_byte(bad), 1U);
  }
}

}  // namespace
}  // namespace nas
