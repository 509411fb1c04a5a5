#pragma once

#include <string>
#include <vector>

namespace nas {

/// One line of a CSV file with its line end, RFC 4180: fields with a comma, a quotation mark or a
/// line end are quoted, marks within doubled; the line ends in CR LF. A text that begins with =, +,
/// - or @, and is no number, gets a ' before it: spreadsheet programs would compute it.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace nas
