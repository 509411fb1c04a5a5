#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace nas {

/// A value for people: two decimals, three digits below 1, a prefix from 100,000 on ("2.5 M").
std::string number_text(double value);

/// A number with a fixed number of decimals.
std::string fixed_text(double value, int decimals);

/// A whole number with commas: "1,200".
std::string grouped(std::int64_t number);

/// "1 record", "2 records".
/// @param many  what several are called; "" = with an s.
std::string counted(std::int64_t number, const std::string& one, const std::string& many = "");

/// How many were used: "3", and "2/3" where fewer were than should have been.
std::string used_text(std::int64_t used, std::int64_t wanted);

/// Whether a character of UTF-8 begins with this byte.
bool begins_character(char c);

/// Characters that a UTF-8 text takes on a terminal (no wide ones occur).
std::size_t width_of(const std::string& text);

/// A text of at most `width` characters: a longer one ends in "…".
std::string shortened(const std::string& text, std::size_t width);

/// Of lines that nothing limits, as those of files and pipes.
inline constexpr auto kAnyWidth = std::numeric_limits<std::size_t>::max();
/// Of sentences, at most.
inline constexpr std::size_t kLineWidth = 100;

/// A line as lines of at most `width` characters, which end at blanks.
/// @param indent       blanks before each but the first, fewer than `width`.
/// @param whole_words  a longer word makes a longer line; else it is divided, behind a comma, | or /
/// if it has one there.
std::vector<std::string> folded(std::string line, std::size_t width, std::size_t indent,
                                bool whole_words);

/// A text with its lines folded. A line goes on below the beginning of its last column, which two
/// blanks set apart, unless that leaves less than half of the width.
/// @param width       at least 8, or kAnyWidth: then the text is as it was.
/// @param paragraphs  a line that was folded goes on in the next one where that stands as far to the
/// right, as lines of a paragraph do.
std::string wrapped(const std::string& text, std::size_t width, bool paragraphs = false);

/// One line of a CSV file with its line end, RFC 4180: fields with a comma, a quotation mark or a
/// line end are quoted, marks within doubled; the line ends in CR LF. A text that begins with =, +,
/// - or @, and is no number, gets a ' before it: spreadsheet programs would compute it.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace nas
