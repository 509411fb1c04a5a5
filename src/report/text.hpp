#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace nas {

/// A value for people: two decimals, three digits below 1, a prefix from 100,000 on ("2.5 M").
std::string number_text(double value);

/// A number with a fixed number of decimals.
std::string fixed_text(double value, int decimals);

/// A whole number with commas: "1,200".
std::string grouped(std::int64_t number);

/// How many were used: "3", and "2/3" where fewer were than should have been.
std::string used_text(std::int64_t used, std::int64_t wanted);

/// Whether a character of UTF-8 begins with this byte.
bool begins_character(char c);

/// Characters that a UTF-8 text takes on a terminal (no wide ones occur).
std::size_t width_of(const std::string& text);

/// A text of at most `width` characters: a longer one ends in "…".
std::string shortened(const std::string& text, std::size_t width);

/// A text in lines of at most 100 characters, each ended.
std::string wrapped(const std::string& text);

}  // namespace nas
