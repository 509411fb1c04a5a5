#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nas {

/// @return the shortest decimal that reads back equal ("0.1", "3e-04", "1"); inf and nan as such.
/// Independent of locale.
std::string shortest(double value);

/// @return the decimal number that all of a text is; nothing for another text, or one beyond the range
/// of doubles. Independent of locale.
std::optional<double> number_in(std::string_view text);

/// @return seconds as "41 s", "3 min 20 s", "2 h 05 min", "4 d 3 h".
std::string human_duration(double seconds);

/// A duration that was given, "0.45 s": below a minute to its last digit, then as human_duration().
std::string limit_text(double seconds);

/// @return a count with an SI prefix and three significant digits: "1.69 M", "445 M", "12".
std::string human_count(double value);

/// @return bytes as "319 MiB", "2.50 GiB", "3.40 TiB".
std::string human_bytes(std::int64_t bytes);

/// @return a text that may be another's, as a terminal can show it without obeying it: U+FFFD stands
/// for each control character but the ends of lines and tabs, and for bytes that are no UTF-8.
std::string printable(std::string_view text);

}  // namespace nas
