#include "data/normalization.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "data/unicode.hpp"
#include "data/unicode_ranges.hpp"

namespace nas {

namespace {

// Hangul is by formula: a leading consonant, a vowel and, maybe, a final consonant are a syllable.
constexpr char32_t kSyllable = 0xAC00, kLeading = 0x1100, kVowel = 0x1161, kFinal = 0x11A7;
constexpr char32_t kVowels = 21, kFinals = 28, kSyllables = 19 * kVowels * kFinals;

struct Parts {
  char32_t first = 0, second = 0;
};

/// What unicode_ranges.hpp says.
class Forms {
 public:
  Forms() {
    for_each_entry(kUnicodeMarks, [&](std::string_view entry) {
      const auto first = take_number(entry);
      const auto last = take_number(entry);
      const auto kind = static_cast<std::uint8_t>(take_number(entry));
      for (auto code = first; code <= last; ++code) classes_.emplace(code, kind);
    });
    for_each_entry(kUnicodeDecompositions, [&](std::string_view entry) {
      const bool joined = entry.find('=') != std::string_view::npos;
      const auto code = take_number(entry);
      const auto first = take_number(entry);
      const auto second = take_number(entry);
      parts_.emplace(code, Parts{first, second});
      if (joined) wholes_.emplace(key(first, second), code);
    });
  }

  /// Canonical combining class; 0 of what begins a letter.
  [[nodiscard]] std::uint8_t combining_class(char32_t code) const {
    const auto found = classes_.find(code);
    return found == classes_.end() ? std::uint8_t{0} : found->second;
  }

  /// Appends the canonical decomposition.
  void decompose(char32_t code, std::u32string& parts) const {
    if (kSyllable <= code && code < kSyllable + kSyllables) {
      const char32_t place = code - kSyllable;
      parts += kLeading + place / (kVowels * kFinals);
      parts += kVowel + place % (kVowels * kFinals) / kFinals;
      if (place % kFinals != 0) parts += kFinal + place % kFinals;
      return;
    }
    const auto found = parts_.find(code);
    if (found == parts_.end()) {
      parts += code;
      return;
    }
    decompose(found->second.first, parts);
    if (found->second.second != 0) decompose(found->second.second, parts);
  }

  /// @return the character that two make, or 0.
  [[nodiscard]] char32_t joined(char32_t first, char32_t second) const {
    if (kLeading <= first && first < kLeading + 19 && kVowel <= second &&
        second < kVowel + kVowels) {
      return kSyllable + ((first - kLeading) * kVowels + second - kVowel) * kFinals;
    }
    if (kSyllable <= first && first < kSyllable + kSyllables &&
        (first - kSyllable) % kFinals == 0 && kFinal < second && second < kFinal + kFinals) {
      return first + second - kFinal;
    }
    const auto found = wholes_.find(key(first, second));
    return found == wholes_.end() ? U'\0' : found->second;
  }

 private:
  static std::uint64_t key(char32_t first, char32_t second) {
    return static_cast<std::uint64_t>(first) << 32U | second;
  }

  template <class Use>
  static void for_each_entry(std::string_view text, const Use& use) {
    for (auto blank = text.find(' '); blank != std::string_view::npos; blank = text.find(' ')) {
      use(text.substr(0, blank));
      text.remove_prefix(blank + 1);
    }
  }

  /// Takes hexadecimal digits and the sign behind them; 0 where there are none.
  static char32_t take_number(std::string_view& text) {
    std::uint32_t number = 0;
    const auto* const end = std::from_chars(text.data(), text.data() + text.size(), number, 16).ptr;
    text.remove_prefix(std::min(text.size(), static_cast<std::size_t>(end - text.data()) + 1));
    return number;
  }

  std::unordered_map<char32_t, std::uint8_t> classes_;
  std::unordered_map<char32_t, Parts> parts_;
  std::unordered_map<std::uint64_t, char32_t> wholes_;
};

const Forms& forms() {
  static const Forms forms;
  return forms;
}

/// Marks in the order of their classes, of equal ones as they stand.
void order(std::u32string& text) {
  const auto less = [](char32_t a, char32_t b) {
    return forms().combining_class(a) < forms().combining_class(b);
  };
  for (auto begin = text.begin(); begin != text.end();) {
    const auto end = std::find_if(begin + 1, text.end(),
                                  [](char32_t c) { return forms().combining_class(c) == 0; });
    std::stable_sort(forms().combining_class(*begin) == 0 ? begin + 1 : begin, end, less);
    begin = end;
  }
}

/// Joins each character to the last one that begins a letter, unless another one is in its way.
std::u32string compose(const std::u32string& parts) {
  std::u32string text;
  auto start = std::u32string::npos;
  std::uint8_t last = 0;  // class of what stands behind `start`, 0: nothing
  for (const auto code : parts) {
    const auto own = forms().combining_class(code);
    const bool adjacent = start + 1 == text.size();
    if (start != std::u32string::npos && (adjacent || (last != 0 && last < own))) {
      if (const auto whole = forms().joined(text[start], code); whole != 0) {
        text[start] = whole;
        continue;
      }
    }
    if (own == 0) start = text.size();
    last = own;
    text += code;
  }
  return text;
}

void add_normal(std::u32string_view segment, std::string& text) {
  std::u32string parts;
  for (const auto code : segment) forms().decompose(code, parts);
  order(parts);
  for (const auto code : compose(parts)) text += utf8(code);
}

/// Whether nothing before a character can change it, or be changed by it.
bool begins_anew(char32_t code) { return !may_change(code) && forms().combining_class(code) == 0; }

}  // namespace

std::string nfc(std::string_view text) {
  std::string normal;
  normal.reserve(text.size());
  std::u32string segment;  // a character that begins anew, and those behind it that do not
  std::size_t from = 0;    // its first byte
  const auto end_segment = [&](std::size_t to) {
    if (segment.size() > 1 || (segment.size() == 1 && !begins_anew(segment[0]))) {
      add_normal(segment, normal);
    } else {
      normal += text.substr(from, to - from);
    }
    segment.clear();
    from = to;
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto character = character_at(text, at);
    if (character.foreign || character.code < 0x80 || begins_anew(character.code)) end_segment(at);
    if (character.foreign) {
      normal += text[at];
      from = character.end;
    } else {
      segment += character.code;
    }
    at = character.end;
  }
  end_segment(text.size());
  return normal;
}

}  // namespace nas
