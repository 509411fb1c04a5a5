#include "table/format.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string_view>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/hash.hpp"

namespace nas::table_format {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are hashed as they lie here");

template <class Number>
void append(std::string& line, char type, Number number) {
  const auto bytes = std::bit_cast<std::array<char, 8>>(number);
  line += type;
  line.append(bytes.data(), bytes.size());
}

void append(std::string& line, std::string_view text) {
  append(line, 't', text.size());
  line += text;
}

void append(std::string& line, const SQLite::Column& column) {
  if (column.isNull()) {
    line += 'n';
  } else if (column.isInteger()) {
    append(line, 'i', column.getInt64());
  } else if (column.isFloat()) {
    append(line, 'r', column.getDouble());
  } else {
    append(line, column.getString());
  }
}

}  // namespace

std::string quoted(const std::string& column) {
  std::string text = "\"";
  for (const char c : column) text.append(c == '"' ? 2 : 1, c);
  return text + "\"";
}

std::string content_digest(const std::function<SQLite::Statement(const std::string&)>& query) {
  Sha256 hash;
  for (const std::string_view rows :
       {"meta WHERE key <> 'sha256' ORDER BY key", "mechanisms ORDER BY mechanism",
        "trainings ORDER BY mechanism, replicate", "curves ORDER BY mechanism, replicate, step"}) {
    auto select = query("SELECT * FROM " + std::string(rows));
    std::string line;
    append(line, rows.substr(0, rows.find(' ')));
    for (int i = 0; i < select.getColumnCount(); ++i) append(line, select.getColumnName(i));
    hash.update(line + "\n");
    while (select.executeStep()) {
      line.clear();
      for (int i = 0; i < select.getColumnCount(); ++i) append(line, select.getColumn(i));
      hash.update(line + "\n");
    }
    hash.update("\n");
  }
  return hash.hex();
}

std::string name_of(const std::string& mechanism, std::int64_t replicate) {
  return mechanism + ", replicate " + std::to_string(replicate);
}

std::string name_of(const Evaluation& cell) { return name_of(cell.candidate, cell.replicate); }

void check_cell(const Evaluation& cell, bool trained) {
  const auto require = [&cell](bool holds, const std::string& what) {
    if (!holds) throw InputError(name_of(cell) + ": " + what);
  };
  const auto& measured = cell.measured;
  visit_measured([&](const char* name) {
    if (!measured.is_object() || !measured.contains(name)) return;
    const auto number = measured.at(name).get<double>();
    require(std::isfinite(number) && number >= 0.0,
            std::string(name) + " = " + shortest(number) + ", must be finite and at least 0");
  });
  if (!is_usable(cell) || !trained) return;
  require(!cell.curve.empty(), "it was finished, but its curve has no point");
  require(measured.contains("train_seconds"), "it was finished, but its train_seconds are missing");
  const auto longest = measured.at("train_seconds").get<double>();
  for (const auto& point : cell.curve) {
    const auto at_step = " at step " + std::to_string(point.step);
    for (const double sum : {point.train_nll, point.valid.nll, point.valid.batch_mean_nll}) {
      require(std::isfinite(sum), "a loss" + at_step + " = " + shortest(sum) + ", must be finite");
    }
    const auto& valid = point.valid;
    require(valid.tokens > 0 && valid.batches > 0 && valid.correct >= 0 &&
                valid.correct <= valid.tokens,
            "its counts" + at_step + " (" + std::to_string(valid.correct) + " correct of " +
                std::to_string(valid.tokens) + " targets in " + std::to_string(valid.batches) +
                " batches) cannot be");
    require(point.seconds >= 0.0 && point.seconds <= longest,
            "its seconds" + at_step + " = " + shortest(point.seconds) +
                ", must be from 0 to train_seconds = " + shortest(longest));
  }
}

std::vector<std::int64_t> common_steps(const std::vector<const Evaluation*>& cells) {
  const auto longest = std::max_element(
      cells.begin(), cells.end(),
      [](const auto* a, const auto* b) { return a->curve.size() < b->curve.size(); });
  std::vector<std::int64_t> steps;
  if (longest == cells.end()) return steps;
  for (const auto& point : (*longest)->curve) steps.push_back(point.step);
  for (const auto* cell : cells) {
    for (std::size_t i = 0; i < cell->curve.size(); ++i) {
      const auto step = cell->curve[i].step;
      const auto refuse = [&](const std::string& allowed) {
        throw InputError(name_of(*cell) + ": its curve has step " + std::to_string(step) +
                         ", must have " + allowed);
      };
      if (step != steps[i]) refuse("step " + std::to_string(steps[i]) + " there, as others have");
      if (i > 0 && step <= steps[i - 1]) refuse("one after step " + std::to_string(steps[i - 1]));
    }
  }
  return steps;
}

}  // namespace nas::table_format
