#include "data/encoding.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <tuple>

#include "core/error.hpp"
#include "core/warning.hpp"
#include "data/unicode.hpp"
#include "data/vocabulary.hpp"

namespace nas {

namespace {

constexpr std::size_t kLooked = std::size_t{1} << 20U;  ///< bytes that decide about an encoding

unsigned byte_at(std::string_view text, std::size_t position) {
  return static_cast<unsigned char>(text[position]);
}

bool in(unsigned value, unsigned low, unsigned high) { return low <= value && value <= high; }

/// Bytes of the sequence that a byte begins; 0 for one that begins none.
std::size_t sequence_length(unsigned first) {
  if (first < 0x80) return 1;
  if (in(first, 0xC2, 0xDF)) return 2;
  if (in(first, 0xE0, 0xEF)) return 3;
  return in(first, 0xF0, 0xF4) ? 4 : 0;
}

/// What pairs of bytes of a text are, read as one of the encodings of East Asia.
struct Pairs {
  double number = 0.0;       ///< pairs that a byte from 0x81 on begins
  double broken = 0.0;       ///< such bytes without a second one
  double low_second = 0.0;   ///< pairs whose second byte is below 0x7F
  double kana_sjis = 0.0;    ///< kana of Shift-JIS
  double kana_euc = 0.0;     ///< kana of EUC-JP
  double hangul = 0.0;       ///< syllables of EUC-KR
  double frequent_gb = 0.0;  ///< the first level of GB 2312
  double big5 = 0.0;         ///< the first level of Big5
};

Pairs pairs_of(std::string_view text) {
  Pairs pairs;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned first = byte_at(text, i);
    if (first < 0x81) continue;
    const unsigned second = i + 1 < text.size() ? byte_at(text, i + 1) : 0;
    if (!in(second, 0x40, 0xFE) || second == 0x7F) {
      pairs.broken += i + 1 < text.size() ? 1.0 : 0.0;
      continue;
    }
    ++i;
    const bool high = second >= 0xA1;
    pairs.number += 1.0;
    pairs.low_second += second < 0x7F ? 1.0 : 0.0;
    pairs.kana_sjis += in(first, 0x82, 0x83) ? 1.0 : 0.0;
    pairs.kana_euc += high && in(first, 0xA4, 0xA5) ? 1.0 : 0.0;
    pairs.hangul += high && in(first, 0xB0, 0xC8) ? 1.0 : 0.0;
    pairs.frequent_gb += high && in(first, 0xB0, 0xD7) ? 1.0 : 0.0;
    pairs.big5 += in(first, 0xA4, 0xC6) ? 1.0 : 0.0;
  }
  return pairs;
}

/// An encoding of pairs of bytes; empty for none.
std::string pair_encoding(std::string_view text) {
  const auto pairs = pairs_of(text);
  const double n = pairs.number;
  if (n == 0.0 || pairs.broken > 0.05 * n) return {};
  if (pairs.kana_sjis > 0.15 * n) return "SHIFT-JIS";
  if (pairs.low_second > 0.15 * n && pairs.big5 > 0.5 * n) return "BIG5";
  if (pairs.kana_euc > 0.15 * n) return "EUC-JP";
  if (pairs.hangul > 0.85 * n) return "EUC-KR";
  return pairs.frequent_gb > 0.4 * n ? "GBK" : "";
}

/// An encoding of single bytes, by where its small letters lie.
std::string byte_encoding(std::string_view text, double high) {
  const auto share = [&](unsigned low, unsigned most) {
    return static_cast<double>(std::count_if(
               text.begin(), text.end(),
               [&](char c) { return in(static_cast<unsigned char>(c), low, most); })) /
           high;
  };
  if (share(0xA0, 0xAF) > 0.25) return "CP866";
  return share(0xC0, 0xDF) > share(0xE0, 0xFF) ? "KOI8-R" : "WINDOWS-1251";
}

/// A script that puts no blanks between its words, and how many characters a word of it has at most
/// on average where they are separated.
struct Script {
  char32_t first, last;
  bool syllables;  ///< a character is one, or a word; else it is a letter
};

const Script* script_without_blanks(char32_t c) {
  static constexpr std::array<Script, 9> kScripts{{
      {0x0E00, 0x0EFF, false},   // Thai, Lao
      {0x0F00, 0x0FFF, false},   // Tibetan
      {0x1000, 0x109F, false},   // Myanmar
      {0x1780, 0x17FF, false},   // Khmer
      {0x3005, 0x3007, true},    // marks that stand for Han
      {0x3040, 0x30FF, true},    // kana
      {0x3400, 0x4DBF, true},    // Han, extension A
      {0x4E00, 0x9FFF, true},    // Han
      {0x20000, 0x323AF, true},  // Han, further extensions
  }};
  if (c < kScripts[0].first) return nullptr;
  const auto found = std::find_if(kScripts.begin(), kScripts.end(), [c](const Script& script) {
    return script.first <= c && c <= script.last;
  });
  return found == kScripts.end() ? nullptr : &*found;
}

bool ends_line(char32_t c) { return c == 0x85 || c == 0x2028 || c == 0x2029; }

bool is_blank(char32_t c) {
  return c == 0x200B || (!ends_line(c) && character_class(c) == CharacterClass::space);
}

/// A kind of character: how many there are, and the first.
struct Found {
  std::int64_t number = 0;
  std::size_t position = 0;
  char32_t first = 0;
  void add(std::size_t at, char32_t character) {
    if (number++ == 0) {
      position = at;
      first = character;
    }
  }
};

/// What matters of a text of words.
struct Scan {
  std::int64_t lines = 0;  ///< \n
  Found returns;           ///< \r without \n
  Found other_ends;        ///< ends of lines that are no \n and no \r
  Found blanks;            ///< that separate no words
  Found marks;             ///< byte-order marks
  Found nuls;
  Found syllables;  ///< characters of scripts without blanks
  Found letters;
  std::int64_t of_syllables = 0;  ///< words that have some
  std::int64_t of_letters = 0;
  std::int64_t characters = 0;  ///< but white space
};

void scan_words(std::string_view text, Scan& scan) {
  std::int64_t syllables = 0;  // before the word
  std::int64_t letters = 0;
  const auto end_word = [&] {
    scan.of_syllables += scan.syllables.number > syllables ? 1 : 0;
    scan.of_letters += scan.letters.number > letters ? 1 : 0;
    syllables = scan.syllables.number;
    letters = scan.letters.number;
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    const auto found = next_code_point(text, at);
    if (!found) {
      ++at;
      continue;
    }
    const char32_t c = *found;
    if (c == ' ' || ('\t' <= c && c <= '\r')) {
      end_word();
      scan.lines += c == '\n' ? 1 : 0;
      if (c == '\r' && (at == text.size() || text[at] != '\n')) scan.returns.add(here, c);
      continue;
    }
    ++scan.characters;
    if (c == 0) scan.nuls.add(here, c);
    if (c < 0x80) continue;
    if (ends_line(c)) scan.other_ends.add(here, c);
    if (is_blank(c)) scan.blanks.add(here, c);
    if (c == 0xFEFF) scan.marks.add(here, c);
    if (const auto* script = script_without_blanks(c)) {
      (script->syllables ? scan.syllables : scan.letters).add(here, c);
    }
  }
  end_word();
}

std::string hexadecimal(const char* form, unsigned value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), form, value);
  return text.data();
}

std::string name_of(char32_t character) {
  return character == '\r' ? "\\r" : hexadecimal("U+%04X", static_cast<unsigned>(character));
}

std::string place_of(std::string_view text, std::size_t position) {
  const auto before = text.substr(0, position);
  return "line " + std::to_string(1 + std::count(before.begin(), before.end(), '\n'));
}

/// What is no UTF-8, in words.
std::string foreign_text(std::string_view text, std::size_t position) {
  return "is no UTF-8 (byte " + hexadecimal("0x%02X", byte_at(text, position)) + " in " +
         place_of(text, position) + "), but probably " + probable_encoding(text);
}

std::string conversion(const std::string& encoding) {
  return "; must be UTF-8: iconv -f " + encoding + " -t UTF-8";
}

void require_ends_of_lines(const std::string& what, const Scan& scan) {
  for (const auto& end : {scan.returns, scan.other_ends}) {
    if (end.number <= scan.lines) continue;
    const auto name = name_of(end.first);
    throw InputError(what + " ends its lines with " + name + (name == "\\r" ? " alone" : "") +
                     ", must end them with \\n: it is cut there");
  }
}

std::string characters(const Found& found) {
  return std::to_string(found.number) + (found.number == 1 ? " character" : " characters");
}

/// Refuses what has no blanks between its words. Texts of the scripts that put none, where they are
/// separated, have 2 syllables, or 5 letters, per word.
void require_blanks(const std::string& what, std::string_view text, const Scan& scan) {
  constexpr std::string_view kMust =
      ": must have blanks between its words, or data.tokenizer = byte, char or bpe, which need "
      "none";
  std::int64_t all = 0;
  for_each_word(text, [&all](std::string_view) { ++all; });
  const auto of_all = " and " + std::to_string(all) + " words between blanks";
  for (const auto& [found, words, most] : {std::tuple(scan.syllables, scan.of_syllables, 3.0),
                                           std::tuple(scan.letters, scan.of_letters, 8.0)}) {
    const auto number = static_cast<double>(found.number);
    const double share = number / static_cast<double>(scan.characters);
    if (number <= most * static_cast<double>(words) || share < 0.02) continue;
    const auto told = what + " has " + characters(found) +
                      " of a script without blanks between words (the first " +
                      name_of(found.first) + " in " + place_of(text, found.position) + ")" + of_all;
    if (share < 0.33) {
      warn(told + ", some of which are whole sentences; data.unit = byte needs no blanks");
      continue;
    }
    throw InputError(told + std::string(kMust));
  }
  if (scan.characters > 200 * all && scan.characters > 1000) {
    throw InputError(what + " has " + std::to_string(scan.characters) + " characters" + of_all +
                     std::string(kMust));
  }
}

void warn_of_parts(const std::string& what, std::string_view text, const Found& found,
                   const std::string& kind) {
  if (found.number == 0) return;
  warn(what + " has " + characters(found) + " that " + kind + " (the first " +
       name_of(found.first) + " in " + place_of(text, found.position) +
       "): they are parts of words, which white space of ASCII alone separates");
}

}  // namespace

std::optional<char32_t> next_code_point(std::string_view text, std::size_t& position) {
  const unsigned first = byte_at(text, position);
  const std::size_t length = sequence_length(first);
  if (length == 1) {
    ++position;
    return first;
  }
  if (length == 0 || position + length > text.size()) return std::nullopt;
  char32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const unsigned next = byte_at(text, position + i);
    if ((next & 0xC0U) != 0x80) return std::nullopt;
    code = code << 6U | (next & 0x3FU);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast.at(length) || (0xD800 <= code && code <= 0xDFFF) || code > 0x10FFFF) {
    return std::nullopt;
  }
  position += length;
  return code;
}

std::optional<std::size_t> first_foreign_byte(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (byte_at(text, at) < 0x80) {
      ++at;
      continue;
    }
    if (next_code_point(text, at)) continue;
    const auto rest = text.substr(at);
    const bool cut = at > 0 && rest.size() < sequence_length(byte_at(text, at)) &&
                     std::all_of(rest.begin() + 1, rest.end(), [](char c) {
                       return (static_cast<unsigned char>(c) & 0xC0U) == 0x80;
                     });
    if (!cut) return at;
    return std::nullopt;
  }
  return std::nullopt;
}

std::string wide_encoding(std::string_view text) {
  using namespace std::string_view_literals;
  if (text.starts_with("\xFF\xFE\0\0"sv)) return "UTF-32LE";
  if (text.starts_with("\0\0\xFE\xFF"sv)) return "UTF-32BE";
  if (text.starts_with("\xFF\xFE"sv)) return "UTF-16LE";
  if (text.starts_with("\xFE\xFF"sv)) return "UTF-16BE";
  text = text.substr(0, kLooked);
  // By place in four bytes: control bytes, which no other text has, and those that begin Han and hangul.
  std::array<double, 4> control{};
  std::array<double, 4> han{};
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned byte = byte_at(text, i);
    control.at(i % 4) += byte < 0x09 || in(byte, 0x0E, 0x1A) ? 1.0 : 0.0;
    const bool begins = in(byte, 0x4E, 0x9F) || in(byte, 0xAC, 0xD7);
    han.at(i % 4) += begins || byte == 0x30 || byte == 0x00 || byte == 0xFF ? 1.0 : 0.0;
  }
  const double quarter = static_cast<double>(text.size()) / 4.0;
  if (quarter < 0.5) return {};
  const auto mostly = [&](double number, double of) { return number > 0.9 * of; };
  if (mostly(control[3], quarter) && mostly(control[2], quarter) && quarter >= 1.0)
    return "UTF-32LE";
  if (mostly(control[0], quarter) && mostly(control[1], quarter) && quarter >= 1.0)
    return "UTF-32BE";
  const double half = 2.0 * quarter;
  const double even = control[0] + control[2];
  const double odd = control[1] + control[3];
  if (odd > 0.3 * half && odd > 4.0 * even) return "UTF-16LE";
  if (even > 0.3 * half && even > 4.0 * odd) return "UTF-16BE";
  if (!first_foreign_byte(text)) return {};
  const double han_even = han[0] + han[2];
  const double han_odd = han[1] + han[3];
  if (mostly(han_odd, half) && han_odd - han_even > 0.1 * half) return "UTF-16LE";
  return mostly(han_even, half) && han_even - han_odd > 0.1 * half ? "UTF-16BE" : "";
}

std::string probable_encoding(std::string_view text) {
  if (auto wide = wide_encoding(text); !wide.empty()) return wide;
  text = text.substr(0, kLooked);
  double high = 0.0;
  double letters = 0.0;
  bool c1 = false;
  for (const char c : text) {
    const unsigned byte = static_cast<unsigned char>(c);
    high += byte >= 0x80 ? 1.0 : 0.0;
    c1 = c1 || in(byte, 0x80, 0x9F);
    letters += in(byte | 0x20U, 'a', 'z') ? 1.0 : 0.0;
  }
  if (high < 0.3 * (high + letters)) return c1 ? "WINDOWS-1252" : "LATIN1";  // letters with accents
  if (auto pairs = pair_encoding(text); !pairs.empty()) return pairs;
  return byte_encoding(text, high);
}

void require_encoding(const std::string& what, std::string_view text, bool bytes) {
  if (const auto wide = wide_encoding(text); !wide.empty()) {
    throw InputError(what + " is " + wide + conversion(wide));
  }
  const auto foreign = first_foreign_byte(text);
  if (!foreign) return;
  const auto told = what + " " + foreign_text(text, *foreign);
  if (!bytes) throw InputError(told + conversion(probable_encoding(text)));
  warn(told + ": its bytes are taken as they are");
}

void require_plain_text(const std::string& what, std::string_view text, TextPiece piece) {
  require_encoding(what, text, piece == TextPiece::byte);
  if (piece != TextPiece::word) return;
  for (const std::string_view escape : {"\x1b$", "\x1b(J"}) {
    if (text.find(escape) != std::string_view::npos) {
      throw InputError(what + " is ISO-2022-JP" + conversion("ISO-2022-JP"));
    }
  }
  Scan scan;
  scan_words(text, scan);
  if (scan.nuls.number > 0) {
    throw InputError(what + " has " + std::to_string(scan.nuls.number) +
                     " NUL bytes, the first in " + place_of(text, scan.nuls.position) +
                     ": must be text");
  }
  require_ends_of_lines(what, scan);
  require_blanks(what, text, scan);
  warn_of_parts(what, text, scan.other_ends, "end lines elsewhere");
  warn_of_parts(what, text, scan.blanks, "are blanks elsewhere");
  warn_of_parts(what, text, scan.marks, "are byte-order marks within the text");
}

}  // namespace nas
