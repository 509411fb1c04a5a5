#include "table/comparison_store.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>

#include "core/error.hpp"
#include "core/format.hpp"
#include "store/database.hpp"
#include "store/record_json.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 1;

static_assert(std::endian::native == std::endian::little, "the arrays are stored as they lie here");

// Texts of settings, truth and believed are JSON.
constexpr const char* kSchema = R"sql(
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL             -- JSON
) WITHOUT ROWID;
CREATE TABLE candidates (
  number   INTEGER PRIMARY KEY,
  name     TEXT NOT NULL,
  label    TEXT NOT NULL,
  truth    TEXT NOT NULL,         -- minimisation form, mean over all replicates, truth_splits
  believed TEXT NOT NULL          -- the same on the validation split
);
CREATE TABLE algorithms (
  number   INTEGER PRIMARY KEY,
  name     TEXT NOT NULL UNIQUE,
  key      TEXT NOT NULL,         -- of the plug-in
  settings TEXT NOT NULL
);
CREATE TABLE searches (
  algorithm      INTEGER NOT NULL,
  seed           INTEGER NOT NULL,
  asked          INTEGER NOT NULL,
  search_seconds REAL NOT NULL,   -- processor time of the search itself
  ended_by       TEXT NOT NULL,
  candidates     BLOB NOT NULL,   -- int32, one an ask
  trained        BLOB NOT NULL,   -- int32, trainings charged so far
  seconds        BLOB NOT NULL,   -- float64, seconds of training charged so far
  fitness        BLOB NOT NULL,   -- float64, asks x objectives, minimisation form; NaN at a rung
  steps          BLOB NOT NULL,   -- int64, steps of training charged so far
  digest         BLOB,            -- SHA-256, see digest_of
  PRIMARY KEY (algorithm, seed)
);
)sql";

constexpr DatabaseKind kKind{.name = "comparison store",
                             .application_id = 0x6e617363,  // "nasc": no store of a run
                             .version = kVersion,
                             .schema = kSchema};

template <class Number>
void bind_array(SQLite::Statement& statement, int column, const std::vector<Number>& numbers) {
  const auto bytes = static_cast<int>(numbers.size() * sizeof(Number));
  // A null pointer would bind NULL, which an empty array is not.
  statement.bindNoCopy(column, numbers.empty() ? static_cast<const void*>("") : numbers.data(),
                       bytes);
}

template <class Number>
std::vector<Number> read_array(const SQLite::Column& column) {
  const auto bytes = static_cast<std::size_t>(column.getBytes());
  std::vector<Number> numbers(bytes / sizeof(Number));
  // Of one that was cut within a number the rest is left out.
  const auto whole = numbers.size() * sizeof(Number);
  if (whole > 0) std::memcpy(numbers.data(), column.getBlob(), whole);
  return numbers;
}

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

/// Of the columns of a search's row in their order, but for `asked`, which follows from them.
std::string digest_of(const ComparedSearch& search) {
  const auto& trajectory = search.trajectory;
  const std::array<std::string, 9> columns{
      std::to_string(search.algorithm), std::to_string(search.seed),
      shortest(search.search_seconds),  search.ended_by,
      bytes_of(trajectory.candidates),  bytes_of(trajectory.trained),
      bytes_of(trajectory.seconds),     bytes_of(trajectory.fitness),
      bytes_of(trajectory.steps)};
  return row_digest(columns);
}

/// What readers take for granted of a search: the arrays fit together, each ask is of one of the
/// candidates, where these are recorded, and what is charged grows.
bool is_sound(const Trajectory& trajectory, const std::vector<ComparedCandidate>& candidates) {
  const auto asks = trajectory.candidates.size();
  const auto& fitness = trajectory.fitness;
  const bool wide = candidates.empty() ? asks == 0 || fitness.size() % asks == 0
                                       : fitness.size() == asks * candidates.front().truth.size();
  const auto& trained = trajectory.trained;
  return wide && trained.size() == asks && (asks == 0 || trained.front() >= 0) &&
         std::is_sorted(trained.begin(), trained.end()) && trajectory.seconds.size() == asks &&
         (trajectory.steps.empty() || trajectory.steps.size() == asks) &&
         std::all_of(trajectory.candidates.begin(), trajectory.candidates.end(),
                     [&candidates](std::int32_t candidate) {
                       return candidate >= 0 &&
                              (candidates.empty() || candidate < std::ssize(candidates));
                     });
}

}  // namespace

struct ComparisonStore::State {
  Database database;

  [[nodiscard]] SQLite::Statement statement(const std::string& sql) const {
    return database.statement(sql);
  }

  /// @param otherwise  what else can be done about it.
  [[noreturn]] void refuse(const std::string& record, const std::string& reason,
                           const std::string& otherwise = "") const {
    throw InputError(database.file().string() + ": " + record + " is damaged: " + reason +
                     "; put a copy of the file in its place" + otherwise);
  }

  /// The JSON of a column. @throws InputError naming file and record where it is none of this type.
  template <class Value = nlohmann::json>
  [[nodiscard]] Value parsed(const SQLite::Column& column, const std::string& record) const {
    try {
      return parse_record(column.getString()).get<Value>();
    } catch (const InputError& error) {
      refuse(record, error.what());
    } catch (const nlohmann::json::exception& error) {
      refuse(record, error.what());
    }
  }
};

// Searches that a power cut loses are repeated.
ComparisonStore::ComparisonStore(const fs::path& file, Mode mode)
    : state_(new State{
          {file, kKind,
           mode == Mode::write ? Database::Mode::write_relaxed : Database::Mode::read_only}}) {
  if (mode == Mode::read_only || meta("kind")) return;
  set_meta("kind", "comparison");
  set_meta("version", kVersion);
}

ComparisonStore::~ComparisonStore() = default;

void ComparisonStore::require_in_place() const { state_->database.require_in_place(); }

void ComparisonStore::refuse(const std::string& record, const std::string& reason) const {
  state_->refuse(record, reason);
}

void ComparisonStore::set_meta(const std::string& key, const nlohmann::json& value) {
  state_->database.transact([&] {
    auto insert = state_->statement("INSERT OR REPLACE INTO meta VALUES (?, ?)");
    insert.bind(1, key);
    insert.bind(2, value.dump());
    insert.exec();
  });
}

std::optional<nlohmann::json> ComparisonStore::meta(const std::string& key) const {
  return state_->database.guarded([&]() -> std::optional<nlohmann::json> {
    auto select = state_->statement("SELECT value FROM meta WHERE key = ?");
    select.bind(1, key);
    if (!select.executeStep()) return std::nullopt;
    return state_->parsed(select.getColumn(0), "the fact " + key);
  });
}

void ComparisonStore::set_candidates(const std::vector<ComparedCandidate>& candidates) {
  state_->database.transact([&] {
    state_->statement("DELETE FROM candidates").exec();
    auto insert = state_->statement("INSERT INTO candidates VALUES (?, ?, ?, ?, ?)");
    std::int64_t number = 0;
    for (const auto& candidate : candidates) {
      insert.bind(1, number++);
      insert.bind(2, candidate.name);
      insert.bind(3, candidate.label);
      insert.bind(4, nlohmann::json(candidate.truth).dump());
      insert.bind(5, nlohmann::json(candidate.believed).dump());
      insert.exec();
      insert.reset();
    }
  });
}

std::vector<ComparedCandidate> ComparisonStore::candidates() const {
  return state_->database.guarded([&] {
    auto select =
        state_->statement("SELECT name, label, truth, believed FROM candidates ORDER BY number");
    const auto numbers = [this, &select](int column) {
      return state_->parsed<std::vector<double>>(
          select.getColumn(column), "the candidate " + select.getColumn(0).getString());
    };
    std::vector<ComparedCandidate> candidates;
    while (select.executeStep()) {
      candidates.push_back({.name = select.getColumn(0).getString(),
                            .label = select.getColumn(1).getString(),
                            .truth = numbers(2),
                            .believed = numbers(3)});
    }
    return candidates;
  });
}

std::vector<ComparedAlgorithm> ComparisonStore::algorithms() const {
  return state_->database.guarded([&] {
    auto select = state_->statement("SELECT name, key, settings FROM algorithms ORDER BY number");
    std::vector<ComparedAlgorithm> algorithms;
    while (select.executeStep()) {
      const auto name = select.getColumn(0).getString();
      algorithms.push_back(
          {.name = name,
           .key = select.getColumn(1).getString(),
           .settings = state_->parsed(select.getColumn(2), "the algorithm " + name)});
    }
    return algorithms;
  });
}

std::int64_t ComparisonStore::number_of(const ComparedAlgorithm& algorithm) {
  const auto known = algorithms();
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i].name == algorithm.name) return static_cast<std::int64_t>(i);
  }
  const auto number = static_cast<std::int64_t>(known.size());
  state_->database.transact([&] {
    auto insert = state_->statement("INSERT INTO algorithms VALUES (?, ?, ?, ?)");
    insert.bind(1, number);
    insert.bind(2, algorithm.name);
    insert.bind(3, algorithm.key);
    insert.bind(4, algorithm.settings.dump());
    insert.exec();
  });
  return number;
}

std::set<std::int64_t> ComparisonStore::seeds(std::int64_t algorithm) const {
  return state_->database.guarded([&] {
    auto select = state_->statement("SELECT seed FROM searches WHERE algorithm = ?");
    select.bind(1, algorithm);
    std::set<std::int64_t> seeds;
    while (select.executeStep()) seeds.insert(select.getColumn(0).getInt64());
    return seeds;
  });
}

void ComparisonStore::add(const std::vector<ComparedSearch>& searches) {
  state_->database.transact([&] {
    auto insert =
        state_->statement("INSERT INTO searches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (const auto& search : searches) {
      const auto& trajectory = search.trajectory;
      insert.bind(1, search.algorithm);
      insert.bind(2, search.seed);
      insert.bind(3, static_cast<std::int64_t>(trajectory.candidates.size()));
      insert.bind(4, search.search_seconds);
      insert.bind(5, search.ended_by);
      bind_array(insert, 6, trajectory.candidates);
      bind_array(insert, 7, trajectory.trained);
      bind_array(insert, 8, trajectory.seconds);
      bind_array(insert, 9, trajectory.fitness);
      bind_array(insert, 10, trajectory.steps);
      const auto digest = digest_of(search);
      insert.bind(11, static_cast<const void*>(digest.data()), static_cast<int>(digest.size()));
      insert.exec();
      insert.reset();
    }
  });
}

void ComparisonStore::for_each_search(
    std::int64_t algorithm, const std::function<void(const ComparedSearch&)>& visit) const {
  const auto candidates = this->candidates();
  state_->database.guarded([&] {
    auto select = state_->statement(
        "SELECT seed, search_seconds, ended_by, candidates, trained, seconds, fitness, steps, "
        "digest FROM searches WHERE algorithm = ? ORDER BY seed");
    select.bind(1, algorithm);
    while (select.executeStep()) {
      const ComparedSearch search{
          .algorithm = algorithm,
          .seed = select.getColumn(0).getInt64(),
          .search_seconds = select.getColumn(1).getDouble(),
          .ended_by = select.getColumn(2).getString(),
          .trajectory = {.candidates = read_array<std::int32_t>(select.getColumn(3)),
                         .trained = read_array<std::int32_t>(select.getColumn(4)),
                         .seconds = read_array<double>(select.getColumn(5)),
                         .fitness = read_array<double>(select.getColumn(6)),
                         .steps = read_array<std::int64_t>(select.getColumn(7))}};
      const auto digest = select.getColumn(8);
      const bool fits = digest.getString() == digest_of(search);
      if (!fits || !is_sound(search.trajectory, candidates)) {
        state_->refuse(
            "the search with seed " + std::to_string(search.seed) + " of algorithm " +
                std::to_string(algorithm),
            fits              ? "its asks and what is recorded of them do not fit together"
            : digest.isNull() ? "it has no SHA-256"
                              : "its SHA-256 does not fit",
            ", or delete the row of this search, which the same command then makes again");
      }
      visit(search);
    }
  });
}

}  // namespace nas
