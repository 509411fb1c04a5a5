#include "report/csv.hpp"

#include "core/error.hpp"

namespace nas {

namespace {

std::string csv_field(const std::string& text) {
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
