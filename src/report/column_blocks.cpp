#include "report/column_blocks.hpp"

#include <algorithm>
#include <ostream>
#include <utility>

namespace nas {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kRecords = 1000;  // of a block

/// Whether values are objects of the same keys, or lists of the same length; of one, or none, they
/// stay as they are.
bool are_alike(const Json& values) {
  const auto& first = values.front();
  if (!first.is_structured() || first.empty()) return false;
  return std::all_of(values.begin(), values.end(), [&first](const Json& value) {
    if (value.type() != first.type() || value.size() != first.size()) return false;
    if (value.is_array()) return true;
    const auto equal_keys = [](const auto& a, const auto& b) { return a.first == b.first; };
    const auto& one = first.get_ref<const Json::object_t&>();
    const auto& other = value.get_ref<const Json::object_t&>();
    return std::equal(one.begin(), one.end(), other.begin(), equal_keys);
  });
}

/// A column for each part of values that are alike.
Json parts_of(Json& values) {
  auto parts = values.front();
  for (auto part = parts.begin(); part != parts.end(); ++part) {
    auto own = Json::array();
    for (auto& value : values) {
      own.push_back(std::move(
          value.is_array() ? value[static_cast<std::size_t>(std::distance(parts.begin(), part))]
                           : value[part.key()]));
    }
    *part = column_of(std::move(own));
  }
  return parts;
}

}  // namespace

nlohmann::json column_of(nlohmann::json values) {
  if (values.empty()) return values;
  const auto& first = values.front();
  const auto text = first.dump();  // which tells 0 from -0, and within others 1 from 1.0
  const bool exact = first.is_null() || first.is_boolean() || first.is_string();
  const auto is_first = [&](const Json& value) {
    return value == first && (exact || value.dump() == text);
  };
  if (std::all_of(values.begin(), values.end(), is_first)) return {{"all", first}};
  if (are_alike(values)) return {{"each", parts_of(values)}};
  return values;
}

void write_blocks(std::ostream& out, std::size_t size,
                  const std::function<nlohmann::json(std::size_t place)>& at) {
  for (std::size_t first = 0; first < size; first += kRecords) {
    const auto end = std::min(size, first + kRecords);
    auto columns = Json::object();
    for (auto i = first; i < end; ++i) {
      auto record = at(i);
      for (auto& [key, value] : record.items()) columns[key].push_back(std::move(value));
    }
    for (auto& column : columns) column = column_of(std::move(column));
    out << (first == 0 ? "" : ",\n")
        << Json{{"columns", std::move(columns)}, {"records", end - first}};
  }
}

}  // namespace nas
