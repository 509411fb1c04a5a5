#include "store/store.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include <SQLiteCpp/SQLiteCpp.h>

#include "core/error.hpp"
#include "store/writer_lock.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

constexpr int kSchemaVersion = 2;

// Texts are JSON. Doubles in JSON are the shortest decimals that read back equal, so nothing is
// rounded.
constexpr const char* kSchema = R"sql(
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE evaluations (
  id        TEXT PRIMARY KEY,  -- SHA-256 of identity
  candidate TEXT NOT NULL,     -- canonical name
  replicate INTEGER NOT NULL,
  status    TEXT NOT NULL,     -- ok, stopped_early, diverged, out_of_memory, rejected, failed
  reason    TEXT NOT NULL,
  identity  TEXT NOT NULL,     -- all that determines the result
  curve     TEXT NOT NULL,
  "values"  TEXT NOT NULL,
  measured  TEXT NOT NULL      -- times, device, process: not part of the comparable record
) WITHOUT ROWID;
CREATE TABLE asks (
  number      INTEGER PRIMARY KEY,  -- order in which the algorithm asked
  batch       INTEGER NOT NULL,
  genotype    TEXT NOT NULL,
  evaluations TEXT NOT NULL,        -- ids
  reused      INTEGER NOT NULL,
  fitness     TEXT NOT NULL         -- minimisation form
);
CREATE TABLE indicators (
  asked     INTEGER PRIMARY KEY,
  batch     INTEGER NOT NULL,
  evaluated INTEGER NOT NULL,
  front     INTEGER NOT NULL,       -- non-dominated candidates
  value     REAL NOT NULL           -- hypervolume, or the best value of one objective
);
)sql";

nlohmann::json values_json(const Evaluation& evaluation) {
  return canonical_json(evaluation).at("values");
}

}  // namespace

struct Store::State {
  std::mutex mutex;
  std::unique_ptr<WriterLock> lock;
  std::unique_ptr<SQLite::Database> database;
  bool cheap = false;
  std::optional<SQLite::Transaction> open{};  ///< cheap: what is not committed yet
  std::chrono::steady_clock::time_point opened{};

  ~State() {
    if (open) open->commit();
  }

  /// Does what `write` does in one transaction. Cheap writes share one for a fifth of a second.
  template <class Write>
  void in_transaction(Write write) {
    constexpr std::chrono::milliseconds kShared{200};
    if (!cheap) {
      SQLite::Transaction transaction(*database);
      write();
      transaction.commit();
      return;
    }
    if (!open) {
      open.emplace(*database);
      opened = std::chrono::steady_clock::now();
    }
    write();
    if (std::chrono::steady_clock::now() - opened < kShared) return;
    open->commit();
    open.reset();
  }

  SQLite::Statement statement(const char* sql) { return {*database, sql}; }
};

Store::Store(const fs::path& file, Mode mode) : state_(std::make_unique<State>()) {
  const bool write = mode != Mode::read_only;
  state_->cheap = mode == Mode::write_cheap;
  if (write) {
    state_->lock = std::make_unique<WriterLock>(file);
  } else if (!fs::exists(file)) {
    throw InputError(file.string() + ": no such store");
  }
  try {
    state_->database = std::make_unique<SQLite::Database>(
        file.string(),
        write ? SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE : SQLite::OPEN_READONLY);
    auto& database = *state_->database;
    database.setBusyTimeout(10000);
    int version = database.execAndGet("PRAGMA user_version").getInt();
    if (write && version == 0 &&
        database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0) {
      database.exec("PRAGMA journal_mode = WAL");
      SQLite::Transaction transaction(database);
      database.exec(kSchema);
      database.exec("PRAGMA user_version = " + std::to_string(kSchemaVersion));
      transaction.commit();
      version = kSchemaVersion;
    }
    if (version != kSchemaVersion) {
      throw InputError(file.string() + ": not a store of version " +
                       std::to_string(kSchemaVersion) + " (its version is " +
                       std::to_string(version) + ")");
    }
    // FULL: a committed training survives a power cut too; an fsync costs nothing beside a
    // training.
    if (write) {
      database.exec(mode == Mode::write ? "PRAGMA synchronous = FULL"
                                        : "PRAGMA synchronous = NORMAL");
    }
  } catch (const SQLite::Exception& error) {
    throw InputError(file.string() + ": not a readable store: " + error.what());
  }
}

Store::~Store() = default;

void Store::set_meta(const std::string& key, const nlohmann::json& value) {
  const std::lock_guard lock(state_->mutex);
  state_->in_transaction([&] {
    auto insert = state_->statement("INSERT OR REPLACE INTO meta VALUES (?, ?)");
    insert.bind(1, key);
    insert.bind(2, value.dump());
    insert.exec();
  });
}

std::optional<nlohmann::json> Store::meta(const std::string& key) const {
  const std::lock_guard lock(state_->mutex);
  auto select = state_->statement("SELECT value FROM meta WHERE key = ?");
  select.bind(1, key);
  if (!select.executeStep()) return std::nullopt;
  return nlohmann::json::parse(select.getColumn(0).getString());
}

namespace {

constexpr const char* kColumns =
    "SELECT id, candidate, replicate, status, reason, identity, curve, \"values\", measured FROM "
    "evaluations ";

Evaluation read_evaluation(SQLite::Statement& row) {
  Evaluation evaluation;
  evaluation.id = row.getColumn(0).getString();
  evaluation.candidate = row.getColumn(1).getString();
  evaluation.replicate = row.getColumn(2).getInt64();
  evaluation.status = parse_status(row.getColumn(3).getString());
  evaluation.reason = row.getColumn(4).getString();
  evaluation.identity = nlohmann::json::parse(row.getColumn(5).getString());
  evaluation.curve =
      nlohmann::json::parse(row.getColumn(6).getString()).get<std::vector<CurvePoint>>();
  evaluation.values =
      nlohmann::json::parse(row.getColumn(7).getString()).get<std::map<std::string, double>>();
  evaluation.measured = nlohmann::json::parse(row.getColumn(8).getString());
  return evaluation;
}

}  // namespace

std::optional<Evaluation> Store::find(const std::string& id) const {
  const std::lock_guard lock(state_->mutex);
  SQLite::Statement select(*state_->database, std::string(kColumns) + "WHERE id = ?");
  select.bind(1, id);
  if (!select.executeStep()) return std::nullopt;
  return read_evaluation(select);
}

void Store::add(const std::vector<Evaluation>& evaluations) {
  const std::lock_guard lock(state_->mutex);
  state_->in_transaction([&] {
    auto insert =
        state_->statement("INSERT OR IGNORE INTO evaluations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (const auto& evaluation : evaluations) {
      insert.bind(1, evaluation.id);
      insert.bind(2, evaluation.candidate);
      insert.bind(3, evaluation.replicate);
      insert.bind(4, std::string(to_string(evaluation.status)));
      insert.bind(5, evaluation.reason);
      insert.bind(6, evaluation.identity.dump());
      insert.bind(7, nlohmann::json(evaluation.curve).dump());
      insert.bind(8, values_json(evaluation).dump());
      insert.bind(9, evaluation.measured.dump());
      insert.exec();
      insert.reset();
    }
  });
}

std::vector<Evaluation> Store::evaluations() const {
  const std::lock_guard lock(state_->mutex);
  SQLite::Statement select(*state_->database, std::string(kColumns) + "ORDER BY id");
  std::vector<Evaluation> evaluations;
  while (select.executeStep()) evaluations.push_back(read_evaluation(select));
  return evaluations;
}

namespace {

/// Whether the shorter of two lists is the beginning of the other.
bool begin_alike(const nlohmann::json& a, const nlohmann::json& b) {
  const auto common = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  return std::equal(a.begin(), a.begin() + common, b.begin());
}

void write_ask(SQLite::Statement& insert, const Ask& ask) {
  insert.bind(1, ask.number);
  insert.bind(2, ask.batch);
  insert.bind(3, ask.genotype);
  insert.bind(4, nlohmann::json(ask.evaluations).dump());
  insert.bind(5, ask.reused ? 1 : 0);
  insert.bind(6, nlohmann::json(ask.fitness).dump());
  insert.exec();
  insert.reset();
}

}  // namespace

void Store::add_asks(const std::vector<Ask>& asks) {
  const std::lock_guard lock(state_->mutex);
  state_->in_transaction([&] {
    auto select = state_->statement("SELECT genotype, evaluations FROM asks WHERE number = ?");
    auto insert = state_->statement("INSERT OR REPLACE INTO asks VALUES (?, ?, ?, ?, ?, ?)");
    for (const auto& ask : asks) {
      const nlohmann::json ids = ask.evaluations;
      select.bind(1, ask.number);
      if (select.executeStep()) {
        const auto genotype = select.getColumn(0).getString();
        const auto recorded = select.getColumn(1).getString();
        if (genotype != ask.genotype || !begin_alike(nlohmann::json::parse(recorded), ids)) {
          throw std::runtime_error("replay departs from the recorded run at ask " +
                                   std::to_string(ask.number) + ": recorded " + genotype + " " +
                                   recorded + ", now " + ask.genotype + " " + ids.dump());
        }
      }
      select.reset();
      write_ask(insert, ask);
    }
  });
}

void Store::preview_asks(const std::vector<Ask>& asks) {
  const std::lock_guard lock(state_->mutex);
  state_->in_transaction([&] {
    auto insert = state_->statement("INSERT OR IGNORE INTO asks VALUES (?, ?, ?, ?, ?, ?)");
    for (const auto& ask : asks) write_ask(insert, ask);
  });
}

void Store::withdraw_asks(std::int64_t from, std::int64_t batch) {
  const std::lock_guard lock(state_->mutex);
  state_->in_transaction([&] {
    auto remove = state_->statement(
        "DELETE FROM asks WHERE number >= ?1 AND batch = ?2 AND NOT EXISTS (SELECT 1 FROM asks "
        "WHERE batch > ?2)");
    remove.bind(1, from);
    remove.bind(2, batch);
    remove.exec();
  });
}

std::vector<Ask> Store::asks() const {
  const std::lock_guard lock(state_->mutex);
  auto select = state_->statement(
      "SELECT number, batch, genotype, evaluations, reused, fitness FROM asks ORDER BY number");
  std::vector<Ask> asks;
  while (select.executeStep()) {
    const auto list = [&select](int column) {
      return nlohmann::json::parse(select.getColumn(column).getString());
    };
    asks.push_back({.number = select.getColumn(0).getInt64(),
                    .batch = select.getColumn(1).getInt64(),
                    .genotype = select.getColumn(2).getString(),
                    .evaluations = list(3).get<std::vector<std::string>>(),
                    .reused = select.getColumn(4).getInt() != 0,
                    .fitness = list(5).get<std::vector<double>>()});
  }
  return asks;
}

void Store::add_indicator(const Indicator& indicator) {
  const std::lock_guard lock(state_->mutex);
  state_->in_transaction([&] {
    auto insert = state_->statement("INSERT OR REPLACE INTO indicators VALUES (?, ?, ?, ?, ?)");
    insert.bind(1, indicator.asked);
    insert.bind(2, indicator.batch);
    insert.bind(3, indicator.evaluated);
    insert.bind(4, indicator.front);
    insert.bind(5, indicator.value);
    insert.exec();
  });
}

std::vector<Indicator> Store::indicators() const {
  const std::lock_guard lock(state_->mutex);
  auto select = state_->statement(
      "SELECT asked, batch, evaluated, front, value FROM indicators ORDER BY asked");
  std::vector<Indicator> indicators;
  while (select.executeStep()) {
    indicators.push_back({.asked = select.getColumn(0).getInt64(),
                          .batch = select.getColumn(1).getInt64(),
                          .evaluated = select.getColumn(2).getInt64(),
                          .front = select.getColumn(3).getInt64(),
                          .value = select.getColumn(4).getDouble()});
  }
  return indicators;
}

}  // namespace nas
