#include "table/table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <sys/stat.h>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "table/format.hpp"
#include "table/meta.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;
namespace format = table_format;

/// More cells than any table has: looking at all of them takes seconds.
constexpr std::size_t kMostCells = 10'000'000;

/// Measured seconds, those that are charged first.
constexpr std::array kCharged{"cpu_seconds", "train_seconds"};

/// The rows of one table of a file, column by column, each value of the type that it is asked for
/// as.
class Rows {
 public:
  Rows(const Database& database, std::string table, const std::string& columns,
       const std::string& order)
      : table_(std::move(table)),
        select_(
            database.statement("SELECT " + columns + " FROM " + table_ + " ORDER BY " + order)) {}

  bool next() {
    column_ = 0;
    return select_.executeStep();
  }

  std::int64_t integer(std::int64_t least, std::int64_t most) {
    const auto column = take();
    if (column.isInteger() && column.getInt64() >= least && column.getInt64() <= most) {
      return column.getInt64();
    }
    refuse("an integer in [" + std::to_string(least) + ", " + std::to_string(most) + "]");
  }
  /// NaN for NULL.
  double real() {
    const auto column = take();
    if (column.isNull()) return std::numeric_limits<double>::quiet_NaN();
    if (column.isFloat()) return column.getDouble();
    refuse("a real number or NULL");
  }
  std::string text() {
    const auto column = take();
    if (!column.isText() || !is_utf8(column.getString())) refuse("a text in UTF-8");
    return column.getString();
  }
  void get(std::int64_t& number) {
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max() / 16;  // sums of which fit
    number = integer(kNotCounted, kMost);
  }
  void get(double& number) { number = real(); }

  /// Complains about the value that was read last.
  [[noreturn]] void refuse(const std::string& allowed) const {
    const auto column = select_.getColumn(column_ - 1);
    const auto value = column.isInteger() ? nlohmann::json(column.getInt64())
                       : column.isFloat() ? nlohmann::json(column.getDouble())
                       : column.isNull()  ? nlohmann::json()
                                          : nlohmann::json(column.getString());
    throw InputError(table_ + "." + column.getName() + " = " + shown(value) + ", must be " +
                     allowed);
  }

 private:
  SQLite::Column take() { return select_.getColumn(column_++); }

  std::string table_;
  SQLite::Statement select_;
  int column_ = 0;
};

/// The values of a table of JSON by key.
nlohmann::json json_of(const Database& database, const std::string& table) {
  auto by_key = nlohmann::json::object();
  Rows rows(database, table, "key, value", "key");
  while (rows.next()) {
    const auto key = rows.text();
    by_key[key] = parse_at(table + ": " + key, rows.text());
  }
  return by_key;
}

bool has_publication(const Database& database) {
  return database
      .statement("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '" +
                 std::string(format::kPublication) + "'")
      .executeStep();
}

/// The columns of `trainings` that are values of evaluations: all that are nothing else.
std::vector<std::string> value_columns(const Database& database) {
  std::string others = "'mechanism', 'replicate', 'status', 'reason'";
  format::visit_measured([&others](const std::string& name) { others += ", '" + name + "'"; });
  Rows rows(database, "pragma_table_info('trainings') WHERE name NOT IN (" + others + ")", "name",
            "cid");
  std::vector<std::string> columns;
  while (rows.next()) columns.push_back(rows.text());
  return columns;
}

}  // namespace

struct Table::Content {
  explicit Content(const fs::path& file);

  using Place = std::pair<std::int64_t, std::int64_t>;  ///< mechanism, replicate

  /// @throws std::logic_error where no cell can be.
  void require_place(std::int64_t mechanism, std::int64_t replicate) const {
    if (mechanism >= 0 && mechanism < std::ssize(mechanisms) && replicate >= 0 &&
        replicate < most_replicates) {
      return;
    }
    throw std::logic_error("table: no cell (" + std::to_string(mechanism) + ", " +
                           std::to_string(replicate) + ")");
  }
  /// @throws InputError if the cell is missing.
  [[nodiscard]] const Evaluation& cell(std::int64_t mechanism, std::int64_t replicate) const;

  std::string sha256;
  TableMeta meta;
  nlohmann::json publication = nlohmann::json::object();
  std::vector<std::string> mechanisms;   ///< ascending
  std::vector<nlohmann::json> measured;  ///< objectives by name, of each mechanism
  std::int64_t replicates = 0;           ///< that most mechanisms have
  std::int64_t most_replicates = 0;      ///< that some mechanism has
  std::vector<std::int64_t> steps;       ///< ascending
  std::map<Place, Evaluation> cells;  ///< without identity; `measured`: the numbers that each has

 private:
  void read(const Database& database);
  void read_mechanisms(const Database& database);
  void read_trainings(const Database& database);
  void read_curves(const Database& database);
  Place read_place(Rows& rows) const;
};

Table::Content::Content(const fs::path& file) {
  const Database database(file, format::kKind, Database::Mode::immutable);
  database.guarded([&] {
    try {
      read(database);
    } catch (const InputError& error) {
      throw InputError(file.string() + ": " + error.what());
    }
  });
}

void Table::Content::read(const Database& database) {
  const auto given = json_of(database, "meta");
  sha256 = format::content_digest([&database](const auto& sql) { return database.statement(sql); });
  if (given.value("sha256", nlohmann::json()) != sha256) {
    throw InputError("its content does not fit its checksum: it was altered");
  }
  meta = read_table_meta(given);
  if (has_publication(database)) publication = json_of(database, format::kPublication);
  check_publication(publication);
  read_mechanisms(database);
  read_trainings(database);
  read_curves(database);
  std::vector<const Evaluation*> all;
  for (const auto& [place, cell] : cells) all.push_back(&cell);
  steps = format::common_steps(all);
  for (const auto* cell : all) format::check_cell(*cell, !meta.facts.contains("space"));
}

void Table::Content::read_mechanisms(const Database& database) {
  Rows rows(database, "mechanisms", "mechanism, name, measured", "mechanism");
  while (rows.next()) {
    const auto next = std::ssize(mechanisms);
    (void)rows.integer(next, next);
    auto name = rows.text();
    if (!mechanisms.empty() && name <= mechanisms.back()) {
      rows.refuse("greater than the one before it");
    }
    measured.push_back(read_measured(name, rows.text()));
    mechanisms.push_back(std::move(name));
  }
}

Table::Content::Place Table::Content::read_place(Rows& rows) const {
  const auto mechanism = rows.integer(0, std::ssize(mechanisms) - 1);
  return {mechanism, rows.integer(0, kFirstHeldOutReplicate - 1)};
}

void Table::Content::read_trainings(const Database& database) {
  const auto values = value_columns(database);
  std::string columns = "mechanism, replicate, status, reason";
  format::visit_measured([&columns](const std::string& name) { columns += ", " + name; });
  for (const auto& name : values) columns += ", " + format::quoted(name);
  Rows rows(database, "trainings", columns, "mechanism, replicate");
  while (rows.next()) {
    const auto place = read_place(rows);
    most_replicates = std::max(most_replicates, place.second + 1);
    if (mechanisms.size() * static_cast<std::size_t>(most_replicates) > kMostCells) {
      rows.refuse("so small that there are at most " + std::to_string(kMostCells) +
                  " cells, with " + std::to_string(mechanisms.size()) + " mechanisms");
    }
    const auto added = cells.try_emplace(place);
    auto& cell = added.first->second;
    if (!added.second) throw InputError("trainings: two rows of " + format::name_of(cell));
    cell.candidate = mechanisms[static_cast<std::size_t>(place.first)];
    cell.replicate = place.second;
    cell.status = parse_status(rows.text());
    cell.reason = rows.text();
    cell.measured = nlohmann::json::object();
    format::visit_measured([&](const char* name) {
      if (const auto number = rows.real(); !std::isnan(number)) cell.measured[name] = number;
    });
    for (const auto& name : values) {
      if (const auto number = rows.real(); !std::isnan(number)) cell.values[name] = number;
    }
  }
  if (cells.empty()) throw InputError("trainings: no row, must have at least one");
  std::vector<Place> places;
  for (const auto& item : cells) places.push_back(item.first);
  replicates = format::common_replicates(places);
  for (std::size_t i = 0; i < mechanisms.size(); ++i) {
    const auto first = cells.lower_bound({static_cast<std::int64_t>(i), 0});
    if (first != cells.end() && std::cmp_equal(first->first.first, i)) continue;
    throw InputError("trainings: no row of " + mechanisms[i] + ", must have at least one");
  }
}

void Table::Content::read_curves(const Database& database) {
  std::string columns = "mechanism, replicate, step";
  CurvePoint point;
  format::visit_numbers(point,
                        [&columns](const std::string& name, auto&) { columns += ", " + name; });
  Rows rows(database, "curves", columns, "mechanism, replicate, step");
  while (rows.next()) {
    const auto place = read_place(rows);
    const auto cell = cells.find(place);
    if (cell == cells.end()) rows.refuse("that of a row in trainings with the same mechanism");
    rows.get(point.step);
    format::visit_numbers(point, [&rows](const char*, auto& number) { rows.get(number); });
    cell->second.curve.push_back(point);
  }
}

const Evaluation& Table::Content::cell(std::int64_t mechanism, std::int64_t replicate) const {
  require_place(mechanism, replicate);
  const auto found = cells.find({mechanism, replicate});
  if (found != cells.end()) return found->second;
  throw InputError("the table has no replicate " + std::to_string(replicate) + " of " +
                   mechanisms[static_cast<std::size_t>(mechanism)]);
}

/// Keeps the last one: a comparison asks for its table some times for every algorithm.
std::shared_ptr<const Table::Content> Table::read_once(const fs::path& file) {
  struct stat found {};
  if (stat(file.c_str(), &found) != 0) return std::make_shared<const Content>(file);
  const auto changed = [](const timespec& time) {
    return std::pair<std::int64_t, std::int64_t>(time.tv_sec, time.tv_nsec);
  };
  auto version = std::tuple(found.st_dev, found.st_ino, found.st_size, changed(found.st_mtim),
                            changed(found.st_ctim));
  static std::mutex mutex;
  static std::pair<decltype(version), std::shared_ptr<const Content>> last;
  const std::lock_guard lock(mutex);
  if (!last.second || last.first != version) {
    last = {version, std::make_shared<const Content>(file)};
  }
  return last.second;
}

Table::Table(const fs::path& file) : content_(read_once(file)) {}

const nlohmann::json& Table::facts() const { return content_->meta.facts; }
const nlohmann::json& Table::publication() const { return content_->publication; }
const std::string& Table::sha256() const { return content_->sha256; }
std::int64_t Table::num_mechanisms() const { return std::ssize(content_->mechanisms); }
const std::string& Table::mechanism(std::int64_t mechanism) const {
  return content_->mechanisms.at(static_cast<std::size_t>(mechanism));
}
std::optional<std::int64_t> Table::find(const std::string& mechanism) const {
  const auto& names = content_->mechanisms;
  const auto found = std::lower_bound(names.begin(), names.end(), mechanism);
  if (found == names.end() || *found != mechanism) return std::nullopt;
  return found - names.begin();
}
std::int64_t Table::num_replicates() const { return content_->replicates; }
std::int64_t Table::most_replicates() const { return content_->most_replicates; }
const std::vector<std::int64_t>& Table::steps() const { return content_->steps; }

bool Table::has(std::int64_t mechanism, std::int64_t replicate) const {
  content_->require_place(mechanism, replicate);
  return content_->cells.contains({mechanism, replicate});
}

Evaluation Table::evaluation(std::int64_t mechanism, std::int64_t replicate) const {
  auto evaluation = content_->cell(mechanism, replicate);
  evaluation.identity = content_->meta.identity;
  evaluation.identity["candidate"] = evaluation.candidate;
  evaluation.identity["replicate"] = replicate;
  evaluation.id = nas::sha256(evaluation.identity.dump());
  const auto numbers = std::exchange(evaluation.measured, measured(mechanism));
  evaluation.measured.update(numbers);
  return evaluation;
}

const nlohmann::json& Table::measured(std::int64_t mechanism) const {
  return content_->measured.at(static_cast<std::size_t>(mechanism));
}

double Table::seconds(std::int64_t mechanism, std::int64_t replicate) const {
  return charged_seconds(content_->cell(mechanism, replicate));
}

double charged_seconds(const Evaluation& recorded) {
  for (const auto* name : kCharged) {
    const auto found = recorded.measured.find(name);
    if (found != recorded.measured.end()) return found->get<double>();
  }
  return 0.0;
}

}  // namespace nas
