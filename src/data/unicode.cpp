#include "data/unicode.hpp"

#include <algorithm>

#include "data/encoding.hpp"
#include "data/unicode_ranges.hpp"

namespace nas {

namespace {

/// The kind of the range of a table that has a character; 0 of none.
template <class Table>
char kind_in(const Table& table, char32_t character) {
  const auto found =
      std::lower_bound(table.begin(), table.end(), character,
                       [](const UnicodeRange& range, char32_t code) { return range.last < code; });
  return found != table.end() && found->first <= character ? found->kind : '\0';
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || ('\t' <= c && c <= '\r');
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (0x2000 <= c && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace

CharacterClass character_class(char32_t c) {
  if (is_space(c)) return CharacterClass::space;
  if (c < 0x80) {
    const auto small = c | 0x20U;
    if ('a' <= small && small <= 'z') return CharacterClass::letter;
    return '0' <= c && c <= '9' ? CharacterClass::number : CharacterClass::other;
  }
  const char kind = kind_in(kUnicodeClasses, c);
  if (kind == 'L') return CharacterClass::letter;
  return kind == 'N' ? CharacterClass::number : CharacterClass::other;
}

CharacterAt character_at(std::string_view text, std::size_t position) {
  auto end = position;
  if (const auto code = next_code_point(text, end)) return {*code, character_class(*code), end};
  return {static_cast<unsigned char>(text[position]), CharacterClass::other, position + 1, true};
}

std::string utf8(char32_t code) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  const auto rest = [&](unsigned shift) { return byte(0x80U | ((code >> shift) & 0x3FU)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0U | (code >> 6U)), rest(0)};
  if (code < 0x10000) return {byte(0xE0U | (code >> 12U)), rest(6), rest(0)};
  return {byte(0xF0U | (code >> 18U)), rest(12), rest(6), rest(0)};
}

bool may_change(char32_t character) {
  return character >= 0x80 && kind_in(kUnicodeUnstable, character) != '\0';
}

}  // namespace nas
