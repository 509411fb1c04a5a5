#include "report/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "core/format.hpp"

namespace nas {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

std::string fixed_text(double value, int decimals) {
  std::array<char, 400> buffer{};  // the largest double has 309 digits
  std::snprintf(buffer.data(), buffer.size(), "%.*f", decimals, value);
  return buffer.data();
}

std::string number_text(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value)) return shortest(value);
  if (size >= 1e5) return human_count(value);
  if (size >= 1000 && value == std::floor(value)) return fixed_text(value, 0);
  if (size >= 0.9995 || size == 0.0) return fixed_text(value, 2);
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%#.3g", value);
  return buffer.data();
}

std::string grouped(std::int64_t number) {
  auto text = std::to_string(number);
  const std::ptrdiff_t sign = number < 0 ? 1 : 0;
  for (auto end = std::ssize(text) - 3; end > sign; end -= 3) {
    text.insert(static_cast<std::size_t>(end), ",");
  }
  return text;
}

std::string used_text(std::int64_t used, std::int64_t wanted) {
  return std::to_string(used) + (used < wanted ? "/" + std::to_string(wanted) : "");
}

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string shortened(const std::string& text, std::size_t width) {
  if (width_of(text) <= width) return text;
  std::size_t characters = 0;
  std::size_t end = 0;
  while (end < text.size()) {
    if (begins_character(text[end]) && ++characters == width) break;
    ++end;
  }
  return text.substr(0, end) + "\u2026";
}

std::string wrapped(const std::string& text) {
  constexpr std::size_t kWidth = 100;
  std::istringstream words(text);
  std::string result;
  std::string line;
  for (std::string word; words >> word;) {
    if (!line.empty() && width_of(line) + 1 + width_of(word) > kWidth) {
      result += line + '\n';
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return line.empty() ? result : result + line + '\n';
}

}  // namespace nas
