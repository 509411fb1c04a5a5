#include "data/pretokens.hpp"

#include <algorithm>
#include <array>

#include "data/unicode.hpp"

namespace nas {

namespace {

using Kind = CharacterClass;

/// The classes of ASCII, which most texts consist of.
const std::array<Kind, 128> kAscii = [] {
  std::array<Kind, 128> kinds{};
  for (std::size_t c = 0; c < kinds.size(); ++c) {
    kinds.at(c) = character_class(static_cast<char32_t>(c));
  }
  return kinds;
}();

struct Place {
  Kind kind = Kind::other;
  std::size_t end = 0;
};

Place at(std::string_view text, std::size_t position) {
  const auto byte = static_cast<unsigned char>(text[position]);
  if (byte < 0x80) return {kAscii[byte], position + 1};
  const auto character = character_at(text, position);
  return {character.kind, character.end};
}

/// Behind the run of a class, of at most so many characters.
std::size_t run(std::string_view text, std::size_t position, Kind kind, std::size_t most) {
  for (; position < text.size() && most > 0; --most) {
    const auto place = at(text, position);
    if (place.kind != kind) break;
    position = place.end;
  }
  return position;
}

constexpr auto kAll = static_cast<std::size_t>(-1);

/// Behind 's, 't, 're, 've, 'm, 'll, 'd at a position; the position itself of none.
/// @param any_case  also capitals, and the long s, which is a small s.
std::size_t contraction_end(std::string_view text, std::size_t position, bool any_case) {
  if (text[position] != '\'') return position;
  const auto rest = text.substr(position + 1, 2);
  if (any_case && rest == "\xC5\xBF") return position + 3;
  const auto letter = [&](std::size_t i) {
    const auto c = i < rest.size() ? rest[i] : '\0';
    return any_case && 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const std::array<char, 2> two{letter(0), letter(1)};
  switch (two[0]) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return position + 2;
    case 'r':
    case 'v':
      return two[1] == 'e' ? position + 3 : position;
    case 'l':
      return two[1] == 'l' ? position + 3 : position;
    default:
      return position;
  }
}

/// Behind white space that begins at a position: all of it at the end of a text, else all but its
/// last character, which belongs to what follows; at least one.
std::size_t space_end(std::string_view text, std::size_t position) {
  auto last = position;
  auto end = position;
  while (end < text.size()) {
    const auto place = at(text, end);
    if (place.kind != Kind::space) break;
    last = end;
    end = place.end;
  }
  return end == text.size() || last == position ? end : last;
}

std::size_t gpt2_end(std::string_view text, std::size_t position) {
  if (const auto end = contraction_end(text, position, /*any_case=*/false); end > position) {
    return end;
  }
  const auto begin = position + (text[position] == ' ' ? 1 : 0);
  if (begin < text.size()) {
    const auto kind = at(text, begin).kind;
    if (kind != Kind::space) return run(text, begin, kind, kAll);
  }
  return space_end(text, position);
}

/// Behind the last end of a line of the white space at a position; the position where it has none.
std::size_t last_line_end(std::string_view text, std::size_t position) {
  const auto end = run(text, position, Kind::space, kAll);
  const auto found = text.substr(position, end - position).find_last_of("\r\n");
  return found == std::string_view::npos ? position : position + found + 1;
}

std::size_t cl100k_end(std::string_view text, std::size_t position) {
  if (const auto end = contraction_end(text, position, /*any_case=*/true); end > position) {
    return end;
  }
  const auto first = at(text, position);
  if (first.kind == Kind::letter) return run(text, position, Kind::letter, kAll);
  if (first.kind == Kind::number) return run(text, position, Kind::number, 3);
  const bool ends_line = text[position] == '\r' || text[position] == '\n';
  const bool more = first.end < text.size();
  if (!ends_line && more && at(text, first.end).kind == Kind::letter) {
    return run(text, first.end, Kind::letter, kAll);
  }
  const auto begin = position + (text[position] == ' ' ? 1 : 0);
  if (begin < text.size() && at(text, begin).kind == Kind::other) {
    const auto end = run(text, begin, Kind::other, kAll);
    return std::min(text.find_first_not_of("\r\n", end), text.size());
  }
  if (run(text, position, Kind::space, kAll) == text.size()) return text.size();
  if (const auto end = last_line_end(text, position); end > position) return end;
  return space_end(text, position);
}

}  // namespace

std::size_t pretoken_end(std::string_view text, std::size_t position, PretokenRule rule) {
  return rule == PretokenRule::gpt2 ? gpt2_end(text, position) : cl100k_end(text, position);
}

}  // namespace nas
