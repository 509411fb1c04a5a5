#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "data/tokenizer.hpp"

namespace nas {

/// The code point of the UTF-8 sequence that begins at byte `position`, which then is behind it.
/// @return nothing, the position unchanged, for what is no such sequence: also of what is longer than
/// it must be, a surrogate, or beyond U+10FFFF.
std::optional<char32_t> next_code_point(std::string_view text, std::size_t& position);

/// The first byte that is no UTF-8. A text whose last character was cut, as enwik8's may be, has none.
std::optional<std::size_t> first_foreign_byte(std::string_view text);

/// UTF-16 or UTF-32 by byte-order mark, or by the NUL and control bytes that such a text has in every
/// second or fourth place; a name as iconv knows it, empty for others.
std::string wide_encoding(std::string_view text);

/// What a text that is no UTF-8 probably is, by the sequences that are frequent in texts of that
/// encoding; a name as iconv knows it.
std::string probable_encoding(std::string_view text);

/// Refuses UTF-16 and UTF-32, and of a text that is not taken as bytes all that is no UTF-8, with the probable encoding.
/// Warns of bytes that are no UTF-8: they are taken as they are.
/// @param what  begins messages, such as the file's name.
/// @throws InputError
void require_encoding(const std::string& what, std::string_view text, bool bytes);

/// The same, and refuses a text of words that would be taken for another: with NUL bytes, with lines
/// that end with \r, U+2028, U+2029 or U+0085, of a script that puts no blanks between words. Warns of
/// characters for blanks or ends of lines that separate no words, and of byte-order marks in it.
/// @throws InputError
void require_plain_text(const std::string& what, std::string_view text, TextPiece piece);

}  // namespace nas
