#include "table/table_writer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "table/format.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;
namespace format = table_format;

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

/// The columns under construction.
class Columns {
 public:
  void add(const std::string& name, const std::string& unit, const std::string& per,
           std::int64_t value) {
    append(name, "i64", unit, per, std::bit_cast<std::uint64_t>(value));
  }
  void add(const std::string& name, const std::string& unit, const std::string& per, double value) {
    append(name, "f64", unit, per, std::bit_cast<std::uint64_t>(value));
  }

  /// What the header says of them. Columns whose words agree keep one.
  nlohmann::json close() {
    auto list = nlohmann::json::array();
    std::size_t offset = 0;
    for (auto& [name, column] : columns_) {
      auto& words = column.words;
      const auto differs = [&words](std::uint64_t word) { return word != words.front(); };
      if (std::none_of(words.begin(), words.end(), differs)) {
        words.resize(1);
        column.per = "table";
      }
      list.push_back({{"name", name},
                      {"type", column.type},
                      {"unit", column.unit},
                      {"per", column.per},
                      {"offset", offset}});
      offset += words.size();
    }
    return list;
  }

  [[nodiscard]] std::string bytes() const {
    std::string bytes;
    for (const auto& [name, column] : columns_) {
      for (const auto word : column.words) append_word(bytes, word);
    }
    return bytes;
  }

  static void append_word(std::string& bytes, std::uint64_t word) {
    for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>((word >> shift) & 255U);
  }

 private:
  struct Column {
    std::string type, unit, per;
    std::vector<std::uint64_t> words{};
  };

  void append(const std::string& name, const char* type, const std::string& unit,
              const std::string& per, std::uint64_t word) {
    auto& column = columns_.try_emplace(name, Column{type, unit, per}).first->second;
    column.words.push_back(word);
  }

  std::map<std::string, Column> columns_;
};

std::string unit_of(const std::string& value) {
  if (value.ends_with("nll")) return "nat";
  if (value.ends_with("flops")) return "FLOP";
  if (value.ends_with("bytes")) return "B";
  return value == "bits_per_byte" ? "bit" : "1";
}

/// Lays the cells out.
class Layout {
 public:
  explicit Layout(const std::vector<Evaluation>& cells) {
    if (cells.empty()) throw InputError("a table needs at least one cell, none is given");
    for (const auto& cell : cells) {
      by_mechanism_[cell.candidate][cell.replicate] = &cell;
      replicates_ = std::max(replicates_, cell.replicate + 1);
      for (const auto& [name, value] : cell.values) values_.insert(name);
      reasons_.insert(cell.reason);
      if (cell.curve.size() > steps_.size()) {
        steps_.clear();
        for (const auto& point : cell.curve) steps_.push_back(point.step);
      }
    }
    for (const auto& cell : cells) require_steps(cell);
  }

  nlohmann::json header() {
    nlohmann::json header = {{"replicates", replicates_},
                             {"steps", steps_},
                             {"reasons", reasons_},
                             {"mechanisms", nlohmann::json::array()},
                             {"measured", nlohmann::json::array()}};
    for (const auto& [mechanism, replicates] : by_mechanism_) {
      header["mechanisms"].push_back(mechanism);
      header["measured"].push_back(measured_objectives(replicates));
      for (std::int64_t replicate = 0; replicate < replicates_; ++replicate) {
        const auto found = replicates.find(replicate);
        add_cell(found == replicates.end() ? nullptr : found->second);
      }
    }
    header["columns"] = columns_.close();
    return header;
  }

  [[nodiscard]] std::string column_bytes() const { return columns_.bytes(); }

 private:
  using Replicates = std::map<std::int64_t, const Evaluation*>;

  void require_steps(const Evaluation& cell) const {
    for (std::size_t i = 0; i < cell.curve.size(); ++i) {
      if (cell.curve[i].step == steps_[i]) continue;
      throw InputError(cell.candidate + ", replicate " + std::to_string(cell.replicate) +
                       ": its curve has step " + std::to_string(cell.curve[i].step) +
                       ", must have step " + std::to_string(steps_[i]) + " there, as others have");
    }
  }

  /// Of each measured objective (an object with "value") the one with the median value over the
  /// replicates that have it, the lower of two.
  static nlohmann::json measured_objectives(const Replicates& replicates) {
    std::map<std::string, std::vector<nlohmann::json>> by_name;
    for (const auto& [replicate, cell] : replicates) {
      for (const auto& [name, value] : cell->measured.items()) {
        if (value.is_object() && value.contains("value")) by_name[name].push_back(value);
      }
    }
    auto medians = nlohmann::json::object();
    for (auto& [name, values] : by_name) {
      std::stable_sort(values.begin(), values.end(), [](const auto& a, const auto& b) {
        return a.at("value").template get<double>() < b.at("value").template get<double>();
      });
      medians[name] = values[(values.size() - 1) / 2];
    }
    return medians;
  }

  /// @param cell  nullptr: missing.
  void add_cell(const Evaluation* cell) {
    static const Evaluation kNone;
    const auto& given = cell != nullptr ? *cell : kNone;
    columns_.add("status", "1", "cell",
                 cell != nullptr ? static_cast<std::int64_t>(cell->status) : format::kMissing);
    const auto reason = cell != nullptr ? reasons_.find(given.reason) : reasons_.begin();
    columns_.add("reason", "1", "cell",
                 static_cast<std::int64_t>(std::distance(reasons_.begin(), reason)));
    columns_.add("points", "1", "cell", static_cast<std::int64_t>(given.curve.size()));
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const auto point = i < given.curve.size() ? given.curve[i] : CurvePoint{};
      format::visit_numbers(point, [&](const char* name, const char* unit, const auto& number) {
        columns_.add(name, unit, "point", number);
      });
    }
    for (const auto& name : values_) {
      const auto value = given.values.find(name);
      columns_.add(std::string(format::kValuePrefix) + name, unit_of(name), "cell",
                   value != given.values.end() ? value->second : kNothing);
    }
    format::visit_measured([&](const char* name, const char* unit) {
      const auto number =
          given.measured.is_object() ? given.measured.value(name, kNothing) : kNothing;
      columns_.add(name, unit, "cell", number);
    });
  }

  std::map<std::string, Replicates> by_mechanism_;
  std::int64_t replicates_ = 0;
  std::set<std::string> values_;
  std::set<std::string> reasons_;
  std::vector<std::int64_t> steps_;
  Columns columns_;
};

void write_whole(const fs::path& file, const std::string& bytes) {
  const fs::path temporary = file.string() + "." + std::to_string(getpid()) + ".tmp";
  std::ofstream out(temporary, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  std::error_code error;
  if (out) fs::rename(temporary, file, error);
  if (!out || error) {
    fs::remove(temporary, error);
    throw InputError(file.string() + ": cannot be written");
  }
}

}  // namespace

void write_table(const TableContent& content, const fs::path& file) {
  Layout layout(content.cells);
  auto header = layout.header();
  header["name"] = content.name;
  header["identity"] = content.identity;
  header["facts"] = content.facts;
  header["sources"] = content.sources;
  auto text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');

  std::string checked;
  Columns::append_word(checked, text.size());
  checked += text + layout.column_bytes();
  std::string bytes(format::kTableMagic);
  Columns::append_word(bytes, static_cast<std::uint64_t>(format::kTableVersion));
  write_whole(file, bytes + sha256(checked) + checked);
}

}  // namespace nas
