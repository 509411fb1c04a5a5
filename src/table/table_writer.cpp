#include "table/table_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <map>
#include <set>

#include <sqlite3.h>
#include <unistd.h>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/fault.hpp"
#include "core/temporary_folder.hpp"
#include "table/format.hpp"
#include "table/meta.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;
namespace format = table_format;

using Replicates = std::map<std::int64_t, const Evaluation*>;

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();  // NULL in SQLite

/// Of each measured objective the one with the median value over the replicates that have it, the
/// lower of two.
nlohmann::json measured_objectives(const Replicates& replicates) {
  std::map<std::string, std::vector<nlohmann::json>> by_name;
  for (const auto& [replicate, cell] : replicates) {
    for (const auto& [name, value] : cell->measured.items()) {
      if (format::is_measured_objective(value)) by_name[name].push_back(value);
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

/// Adds rows to one of the tables, value by value.
class Insertion {
 public:
  Insertion(SQLite::Database& sqlite, const std::string& table)
      : insert_(sqlite, "INSERT INTO " + table + " VALUES (" + places(sqlite, table) + ")") {}

  template <class... Values>
  Insertion& add(const Values&... values) {
    (insert_.bind(++column_, values), ...);
    return *this;
  }
  void end_row() {
    insert_.exec();
    insert_.reset();
    column_ = 0;
  }

 private:
  static std::string places(SQLite::Database& sqlite, const std::string& table) {
    const auto columns = SQLite::Statement(sqlite, "SELECT * FROM " + table).getColumnCount();
    std::string text = "?";
    for (int i = 1; i < columns; ++i) text += ", ?";
    return text;
  }

  SQLite::Statement insert_;
  int column_ = 0;
};

void add_json(SQLite::Database& sqlite, const std::string& table, const nlohmann::json& by_key) {
  Insertion rows(sqlite, table);
  for (const auto& [key, value] : by_key.items()) rows.add(key, value.dump()).end_row();
}

void add_cells(SQLite::Database& sqlite, const std::vector<Evaluation>& cells,
               const std::set<std::string>& values) {
  std::map<std::string, Replicates> by_mechanism;
  for (const auto& cell : cells) by_mechanism[cell.candidate][cell.replicate] = &cell;
  Insertion mechanisms(sqlite, "mechanisms");
  Insertion trainings(sqlite, "trainings");
  Insertion curves(sqlite, "curves");
  std::int64_t mechanism = 0;
  for (const auto& [name, replicates] : by_mechanism) {
    mechanisms.add(mechanism, name, measured_objectives(replicates).dump()).end_row();
    for (const auto& [replicate, cell] : replicates) {
      trainings.add(mechanism, replicate, std::string(to_string(cell->status)), cell->reason);
      format::visit_measured([&, cell = cell](const char* measured) {
        trainings.add(cell->measured.is_object() ? cell->measured.value(measured, kNothing)
                                                 : kNothing);
      });
      for (const auto& value : values) {
        const auto found = cell->values.find(value);
        trainings.add(found != cell->values.end() ? found->second : kNothing);
      }
      trainings.end_row();
      for (const auto& point : cell->curve) {
        curves.add(mechanism, replicate, point.step);
        format::visit_numbers(point,
                              [&curves](const char*, const auto& number) { curves.add(number); });
        curves.end_row();
      }
    }
    ++mechanism;
  }
}

/// @throws InputError where nothing could be written there, so that nothing is begun.
void require_writable(const fs::path& file) {
  const auto refuse = [&file](const std::string& why) {
    throw InputError(file.string() + ": cannot be written: " + why);
  };
  const auto folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (!fs::is_directory(folder)) refuse(folder.string() + " is no folder");
  if (access(folder.c_str(), W_OK) != 0) refuse(io_failure(folder, errno));
  if (fs::is_directory(file)) refuse("it is a folder");
}

/// @param made  that was written.
[[noreturn]] void fail(const SQLite::Exception& failure, int system_error, const fs::path& file,
                       const fs::path& made) {
  const auto code = failure.getErrorCode();
  if (code == SQLITE_FULL) system_error = ENOSPC;
  if (is_lack_of_space(system_error)) throw MachineError(io_failure(made, system_error));
  const auto text = file.string() + ": cannot be written: " + failure.what();
  if (code == SQLITE_ERROR) throw InputError(text);  // a column is there twice, say
  throw MachineError(text);
}

}  // namespace

void write_table(const TableContent& content, const fs::path& file) {
  if (content.cells.empty()) throw InputError("a table needs at least one cell, none is given");
  std::vector<const Evaluation*> cells;
  std::set<std::string> values;
  for (const auto& cell : content.cells) {
    format::check_cell(cell);
    cells.push_back(&cell);
    for (const auto& [name, value] : cell.values) values.insert(name);
  }
  (void)format::common_steps(cells);
  check_publication(content.publication);
  require_writable(file);

  const TemporaryFolder folder;
  const auto made = folder.path() / "table";
  SQLite::Database sqlite(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  try {
    sqlite.exec("PRAGMA application_id = " + std::to_string(format::kKind.application_id));
    sqlite.exec("PRAGMA user_version = " + std::to_string(format::kKind.version));
    sqlite.exec(format::schema(values));
    add_json(sqlite, "meta",
             {{"name", content.name},
              {"identity", content.identity},
              {"facts", content.facts},
              {"sources", content.sources}});
    add_cells(sqlite, content.cells, values);
    add_json(sqlite, "meta", {{"sha256", format::content_digest([&sqlite](const auto& sql) {
                                 return SQLite::Statement(sqlite, sql);
                               })}});
    if (!content.publication.empty()) {
      sqlite.exec(format::kPublicationSchema);
      add_json(sqlite, format::kPublication, content.publication);
    }
    SQLite::Statement vacuum(sqlite, "VACUUM INTO ?");  // equal content gives equal pages
    vacuum.bind(1, made.string());
    vacuum.exec();
  } catch (const SQLite::Exception& failure) {
    fail(failure, sqlite3_system_errno(sqlite.getHandle()), file, made);
  }
  write_durably(file, read_bytes(made));
}

}  // namespace nas
