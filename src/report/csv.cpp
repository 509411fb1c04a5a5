#include "report/csv.hpp"

#include <charconv>
#include <string_view>

#include "core/error.hpp"

namespace nas {

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
