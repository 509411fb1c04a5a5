#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace nas {

/// What a character is to a rule that cuts texts: general categories L* and N*, the property
/// White_Space, anything else (Unicode 14, data/unicode_ranges.hpp).
enum class CharacterClass : std::uint8_t { letter, number, space, other };

CharacterClass character_class(char32_t character);

/// A character of a text in UTF-8, with the place behind it. A byte of no such text is a character
/// of its own, class other.
struct CharacterAt {
  char32_t code = 0;
  CharacterClass kind = CharacterClass::other;
  std::size_t end = 0;
  bool foreign = false;  ///< no UTF-8
};
CharacterAt character_at(std::string_view text, std::size_t position);

/// @return the UTF-8 of a code point.
std::string utf8(char32_t code);

/// Whether normalization form C may write a character otherwise, or join it to the one before:
/// NFC_Quick_Check is No or Maybe (Unicode Standard Annex 15).
bool may_change(char32_t character);

}  // namespace nas
