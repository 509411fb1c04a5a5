#include "report/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string_view>

#include "core/error.hpp"
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

std::string counted(std::int64_t number, const std::string& one, const std::string& many) {
  return std::to_string(number) + " " + (number == 1 ? one : many.empty() ? one + "s" : many);
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

namespace {

/// Where the lines go on that a line of a text is folded into.
std::size_t hanging_indent(const std::string& line, std::size_t width) {
  constexpr std::size_t kItem = 2;  // of a list; what belongs to it stands further to the right
  const auto gap = line.rfind("  ");
  const auto indent = gap == std::string::npos ? 0 : width_of(line.substr(0, gap + 2));
  return indent == kItem || indent > width / 2 ? 2 * kItem : indent;
}

}  // namespace

std::vector<std::string> folded(std::string line, std::size_t width, std::size_t indent,
                                bool whole_words) {
  line.erase(line.find_last_not_of(' ') + 1);
  std::vector<std::string> lines;
  while (width_of(line) > width) {
    std::size_t most = 0;  // bytes of `width` characters
    for (std::size_t characters = 0;; ++most) {
      if (begins_character(line[most]) && ++characters > width) break;
    }
    const auto word = line.find_first_not_of(' ');
    const auto within = [word](std::size_t place) {
      return place != std::string::npos && place > word;
    };
    auto end = line.rfind(' ', most);
    if (!within(end) && whole_words) {
      end = line.find(' ', std::max(most, word));
      if (end == std::string::npos) break;
    } else if (!within(end)) {
      const auto mark = line.find_last_of(",|/", most - 1);
      end = within(mark) ? mark + 1 : most;
    }
    lines.push_back(line.substr(0, end));
    lines.back().erase(lines.back().find_last_not_of(' ') + 1);
    line = std::string(indent, ' ') + line.substr(line.find_first_not_of(' ', end));
  }
  lines.push_back(std::move(line));
  return lines;
}

std::string wrapped(const std::string& text, std::size_t width, bool paragraphs) {
  if (width == kAnyWidth) return text;
  std::string result;
  std::string open;  // the last line of a paragraph so far
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!open.empty()) {
      const auto begin = line.find_first_not_of(' ');
      if (begin == open.find_first_not_of(' ')) {
        line = open + ' ' + line.substr(begin);
      } else {
        result += open + '\n';
      }
      open.clear();
    }
    auto lines = folded(line, width, hanging_indent(line, width), /*whole_words=*/true);
    if (paragraphs && lines.size() > 1) {
      open = std::move(lines.back());
      lines.pop_back();
    }
    result += join(lines, "\n") + '\n';
  }
  return open.empty() ? result : result + open + '\n';
}

namespace {

/// Whether a spreadsheet program would compute a text. A number stands for itself.
bool is_formula(const std::string& text) {
  constexpr std::string_view kBegins = "=+-@";
  if (text.empty() || kBegins.find(text.front()) == std::string_view::npos) return false;
  const auto* const end = text.data() + text.size();
  double number = 0.0;
  return std::from_chars(text.data(), end, number).ptr != end;
}

std::string csv_field(std::string text) {
  if (is_formula(text)) text.insert(0, 1, '\'');
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string csv_line(const std::vector<std::string>& fields) {
  auto quoted = fields;
  for (auto& field : quoted) field = csv_field(field);
  return join(quoted, ",") + "\r\n";
}

}  // namespace nas
