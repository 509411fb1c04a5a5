#include "store/store.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string_view>

#include <unistd.h>

#include "core/error.hpp"
#include "core/host.hpp"
#include "store/database.hpp"
#include "store/record_json.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

constexpr int kSchemaVersion = 3;

// Texts are JSON. Doubles in JSON are the shortest decimals that read back equal, so nothing is
// rounded. A digest is the SHA-256 of its row's other columns, see row_digest; null in rows that
// version 2 has written, whose tables show that the column was added. Indicators follow from the
// asks.
constexpr const char* kSchema = R"sql(
CREATE TABLE meta (
  key    TEXT PRIMARY KEY,
  value  TEXT NOT NULL,
  digest TEXT
) WITHOUT ROWID;
CREATE TABLE evaluations (
  id        TEXT PRIMARY KEY,  -- SHA-256 of identity
  candidate TEXT NOT NULL,     -- canonical name
  replicate INTEGER NOT NULL,
  status    TEXT NOT NULL,     -- ok, stopped_early, diverged, ...
  reason    TEXT NOT NULL,
  identity  TEXT NOT NULL,     -- all that determines the result
  curve     TEXT NOT NULL,
  "values"  TEXT NOT NULL,
  measured  TEXT NOT NULL,     -- times, device, process: not part of the comparable record
  digest    TEXT
) WITHOUT ROWID;
CREATE TABLE asks (
  number      INTEGER PRIMARY KEY,  -- order in which the algorithm asked
  batch       INTEGER NOT NULL,
  genotype    TEXT NOT NULL,
  evaluations TEXT NOT NULL,        -- ids
  reused      INTEGER NOT NULL,
  fitness     TEXT NOT NULL,        -- minimisation form
  digest      TEXT
);
CREATE TABLE indicators (
  asked     INTEGER PRIMARY KEY,
  batch     INTEGER NOT NULL,
  evaluated INTEGER NOT NULL,
  front     INTEGER NOT NULL,       -- non-dominated candidates
  value     REAL NOT NULL           -- hypervolume, or the best value of one objective
);
)sql";

// Only in the store of a search whose answers are told as they arrive.
constexpr const char* kTellsSchema = R"sql(
CREATE TABLE IF NOT EXISTS tells (
  number INTEGER PRIMARY KEY,  -- order in which the algorithm heard of answers
  ask    INTEGER NOT NULL,
  digest TEXT
);
)sql";

// Not in every store: made when a training run is paused for the first time.
constexpr const char* kPartialsSchema = R"sql(
CREATE TABLE IF NOT EXISTS partials (
  id        TEXT PRIMARY KEY,  -- that of the evaluation that it is a part of
  candidate TEXT NOT NULL,
  replicate INTEGER NOT NULL,
  identity  TEXT NOT NULL,
  step      INTEGER NOT NULL,  -- validation step at which it was paused
  curve     TEXT NOT NULL,
  "values"  TEXT NOT NULL,
  measured  TEXT NOT NULL,
  digest    TEXT
) WITHOUT ROWID;
)sql";

constexpr DatabaseKind kKind{.name = "store",
                             .application_id = 0,
                             .version = kSchemaVersion,
                             .oldest = 2,
                             .schema = kSchema,
                             .upgrade =
                                 "ALTER TABLE meta ADD COLUMN digest TEXT;"
                                 "ALTER TABLE evaluations ADD COLUMN digest TEXT;"
                                 "ALTER TABLE asks ADD COLUMN digest TEXT;"};

using Texts = std::vector<std::string>;

/// A table whose rows have digests, as texts column by column.
struct RecordTable {
  const char* name;
  const char* record;   ///< what a row is called in messages
  const char* columns;  ///< the first is the key
  int size;             ///< number of columns
};
constexpr RecordTable kMeta{"meta", "fact", "key, value", 2};
constexpr RecordTable kEvaluations{
    "evaluations", "evaluation",
    "id, candidate, replicate, status, reason, identity, curve, \"values\", measured", 9};
constexpr RecordTable kPartials{
    "partials", "partial training run",
    "id, candidate, replicate, identity, step, curve, \"values\", measured", 8};
constexpr RecordTable kAsks{"asks", "ask", "number, batch, genotype, evaluations, reused, fitness",
                            6};

constexpr RecordTable kTells{"tells", "tell", "number, ask", 2};

/// A record's numbers are texts here: SQLite stores them as numbers in columns of numbers.
void write_row(SQLite::Statement& insert, const Texts& columns) {
  int i = 0;
  for (const auto& column : columns) insert.bind(++i, column);
  insert.bind(++i, row_digest(columns));
  insert.exec();
  insert.reset();
}

/// @param name  where it stands, for the message.
/// @throws InputError unless it is an object; null, where nothing was given, is an empty one.
nlohmann::json object_of(nlohmann::json json, const std::string& name) {
  if (json.is_null()) return nlohmann::json::object();
  if (json.is_object()) return json;
  throw InputError(name + " is of type " + json.type_name() + ", must be an object");
}

/// What readers take for granted of facts that are there, by examples: an object has these keys, of
/// which one that ends in "?" may be missing, a list has elements like its only one.
const nlohmann::json& examples() {
  static const auto all = nlohmann::json::parse(R"({
    "asking": {"asks": [{"evaluations": [""]}]},
    "at_work": {"stage": "", "workers": 0, "waiting": 0, "written": "",
                "arrays": [{"trainings": [{"evaluation": "", "candidate": "", "replicate": 0}],
                            "started": "", "step": 0, "steps": 0, "curve": [], "worker?": ""}]},
    "baseline": {"evaluations": [""], "fitness": []},
    "last_population": [[0]],
    "objectives": [{"name": "", "key?": "", "unit?": "", "maximise?": false}]
  })");
  return all;
}

std::string kind_of(const nlohmann::json& json) {
  if (json.is_object()) return "an object";
  if (json.is_array()) return "a list";
  if (json.is_string()) return "a text";
  return json.is_boolean() ? "true or false" : "a number";
}

/// @param name  where it stands, for the message.
/// @throws InputError unless a value is like an example.
void require_like(const nlohmann::json& example, const nlohmann::json& value,
                  const std::string& name) {
  if (std::string_view(value.type_name()) != example.type_name()) {
    throw InputError(name + " is of type " + value.type_name() + ", must be " + kind_of(example));
  }
  if (example.is_array() && !example.empty()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      require_like(example.front(), value[i], name + "[" + std::to_string(i) + "]");
    }
  }
  if (!example.is_object()) return;
  for (const auto& [key, part] : example.items()) {
    const bool optional = key.back() == '?';
    const auto own = key.substr(0, key.size() - (optional ? 1 : 0));
    if (const auto found = value.find(own); found != value.end()) {
      require_like(part, *found, name + "." + own);
    } else if (!optional) {
      throw InputError(name + "." + own + " is missing");
    }
  }
}

/// Readers take the types of these facts for granted.
nlohmann::json read_meta(const Texts& columns) {
  auto value = parse_record(columns[1]);
  const auto& key = columns[0];
  if (const auto example = examples().find(key); example != examples().end()) {
    if (!value.is_null()) require_like(*example, value, key);
    return value;
  }
  if (key == "config" || key == "facts" || key == "environment") {
    return object_of(std::move(value), key);
  }
  if (key == "labels") {
    value = object_of(std::move(value), key);
    for (const auto& [candidate, label] : value.items()) {
      if (!label.is_string()) throw InputError("the label of " + candidate + " must be a text");
    }
    return value;
  }
  if ((key == "elapsed_seconds" || key == kAskedBefore) && !value.is_number()) {
    throw InputError(key + " is of type " + value.type_name() + ", must be a number");
  }
  if (key != "sessions") return value;
  if (!value.is_array()) {
    throw InputError(key + " is of type " + value.type_name() + ", must be a list");
  }
  for (auto& session : value) {
    session = object_of(std::move(session), "a session");
    session["environment"] =
        object_of(session.value("environment", nlohmann::json()), "a session's environment");
  }
  return value;
}

Texts evaluation_columns(const Evaluation& evaluation, std::optional<std::int64_t> session) {
  auto measured = evaluation.measured;
  if (session) measured["session"] = *session;
  return {evaluation.id,
          evaluation.candidate,
          std::to_string(evaluation.replicate),
          std::string(to_string(evaluation.status)),
          evaluation.reason,
          evaluation.identity.dump(),
          nlohmann::json(evaluation.curve).dump(),
          values_json(evaluation).dump(),
          measured.dump()};
}

Evaluation read_evaluation(const Texts& columns) {
  Evaluation evaluation;
  evaluation.id = columns[0];
  evaluation.candidate = columns[1];
  evaluation.replicate = std::stoll(columns[2]);
  evaluation.status = parse_status(columns[3]);
  evaluation.reason = columns[4];
  evaluation.identity = object_of(parse_record(columns[5]), "identity");
  evaluation.curve = parse_record(columns[6]).get<std::vector<CurvePoint>>();
  if (evaluation.status == Status::paused && evaluation.curve.empty()) {
    throw InputError("curve = [], must be that of a training run which is paused, not empty");
  }
  const auto values = object_of(parse_record(columns[7]), "values");
  for (const auto& [name, value] : values.items()) evaluation.values[name] = read_number(value);
  evaluation.measured = object_of(parse_record(columns[8]), "measured");
  return evaluation;
}

/// The columns of an evaluation that is paused, of those of one.
Texts partial_columns(const Evaluation& evaluation, std::optional<std::int64_t> session) {
  auto columns = evaluation_columns(evaluation, session);
  return {
      columns[0], columns[1], columns[2], columns[5], std::to_string(evaluation.curve.back().step),
      columns[6], columns[7], columns[8]};
}

Evaluation read_partial(const Texts& columns) {
  return read_evaluation({columns[0], columns[1], columns[2],
                          std::string(to_string(Status::paused)), "", columns[3], columns[5],
                          columns[6], columns[7]});
}

/// A list of the evaluations' ids; of an ask up to a validation step a map of its one to the step.
nlohmann::json evaluations_json(const Ask& ask) {
  if (ask.until == 0) return ask.evaluations;
  return nlohmann::json::object({{ask.evaluations.front(), ask.until}});
}

Texts ask_columns(const Ask& ask) {
  return {
      std::to_string(ask.number),   std::to_string(ask.batch), ask.genotype,
      evaluations_json(ask).dump(), ask.reused ? "1" : "0",    nlohmann::json(ask.fitness).dump()};
}

/// The opposite of evaluations_json(). @throws InputError unless there is at least one.
void read_evaluations(const nlohmann::json& json, Ask& ask) {
  if (json.is_array() && !json.empty()) {
    ask.evaluations = json.get<Texts>();
    return;
  }
  if (json.is_object() && json.size() == 1 && json.front().is_number_integer()) {
    ask.evaluations = {json.begin().key()};
    ask.until = json.front();
    if (ask.until > 0) return;
  }
  constexpr std::size_t kShown = 80;
  throw InputError("evaluations = " + json.dump().substr(0, kShown) +
                   ", must be a list of at least one, or one with the step at which it was to "
                   "pause, at least 1");
}

Ask read_ask(const Texts& columns) {
  Ask ask{.number = std::stoll(columns[0]),
          .batch = std::stoll(columns[1]),
          .genotype = columns[2],
          .evaluations = {},
          .reused = columns[4] != "0",
          .fitness = {}};
  read_evaluations(parse_record(columns[3]), ask);
  for (const auto& value : parse_record(columns[5])) ask.fitness.push_back(read_number(value));
  return ask;
}

std::int64_t read_tell(const Texts& columns) { return std::stoll(columns[1]); }

bool has_table(const Database& database, const RecordTable& table) {
  auto named = database.statement("SELECT 1 FROM sqlite_master WHERE name = ?");
  named.bind(1, std::string(table.name));
  return named.executeStep();
}

/// Reads asks, whose evaluations must be recorded, or parts of them.
class AnsweredAsks {
 public:
  explicit AnsweredAsks(const Database& database) : database_(database) {}

  /// @throws InputError naming an evaluation that is not there.
  Ask operator()(const Texts& columns) {
    auto ask = read_ask(columns);
    if (const auto* missing = missing_of(ask)) {
      throw InputError("the evaluation " + *missing + " that answered it is not there");
    }
    return ask;
  }

  /// The first such evaluation of an ask; null: all are there.
  [[nodiscard]] const std::string* missing_of(const Ask& ask) {
    if (!find_) {  // not before a row of an ask is being read: so that both see the same commits
      std::string sql = "SELECT 1 FROM evaluations WHERE id = ?1";
      if (has_table(database_, kPartials)) {
        sql += " UNION ALL SELECT 1 FROM partials WHERE id = ?1";
      }
      find_.emplace(database_.statement(sql));
    }
    for (const auto& id : ask.evaluations) {
      find_->bind(1, id);
      const bool found = find_->executeStep();
      find_->reset();
      if (!found) return &id;
    }
    return nullptr;
  }

 private:
  const Database& database_;
  std::optional<SQLite::Statement> find_{};
};

}  // namespace

struct Store::State {
  std::mutex mutex{};
  Database database;
  bool cheap = false;
  std::optional<bool> partials{};               ///< whether they have a table, if known
  std::optional<std::int64_t> session{};        ///< of this process
  std::optional<Database::Transaction> open{};  ///< cheap: what is not committed yet
  std::chrono::steady_clock::time_point opened{};

  /// Whether there is a table of partial training runs. Only this process makes one.
  [[nodiscard]] bool has_partials() {
    if (!partials) partials = has_table(database, kPartials);
    return *partials;
  }

  /// Does what `write` does in one transaction. Cheap writes share one for a fifth of a second.
  template <class Write>
  void in_transaction(Write write) {
    constexpr std::chrono::milliseconds kLongest{200};
    if (!cheap) {
      database.transact(write);
      return;
    }
    database.guarded([&] {
      if (!open) {
        open.emplace(database);
        opened = std::chrono::steady_clock::now();
      }
      write();
    });
    if (std::chrono::steady_clock::now() - opened >= kLongest) flush();
  }

  void flush() {
    if (!open) return;
    database.guarded([this] { open->commit(); });
    open.reset();
  }

  template <class Read>
  auto reading(Read read) {
    const std::lock_guard lock(mutex);
    return database.guarded(read);
  }

  [[nodiscard]] SQLite::Statement statement(const std::string& sql) const {
    return database.statement(sql);
  }

  [[nodiscard]] SQLite::Statement insert(const RecordTable& table,
                                         const std::string& conflict) const {
    std::string places;
    for (int i = 0; i < table.size; ++i) places += "?, ";
    return statement("INSERT OR " + conflict + " INTO " + table.name + " VALUES (" + places + "?)");
  }

  [[nodiscard]] SQLite::Statement select(const RecordTable& table,
                                         const std::string& rest = "") const {
    const char* digest = database.version() < kSchemaVersion ? "NULL" : "digest";
    return statement(std::string("SELECT ") + table.columns + ", " + digest + " FROM " +
                     table.name + " " + rest);
  }

  [[nodiscard]] bool has_tells() const { return has_table(database, kTells); }

  void write_asks(std::span<const Ask> asks) const;

  [[nodiscard]] std::optional<std::int64_t> first_unanswered() const;
  void remove_asks_from(std::int64_t first) const;
  [[nodiscard]] std::int64_t num_asked() const;
  void note_asked() const;

  /// Reads the present row of select(). @param damage  receives what is wrong with it, if anything.
  template <class Read>
  auto read(const RecordTable& table, SQLite::Statement& row, Read& read, std::string& damage) const
      -> std::optional<decltype(read(Texts()))> {
    Texts columns;
    for (int i = 0; i < table.size; ++i) columns.push_back(row.getColumn(i).getString());
    const auto digest = row.getColumn(table.size);
    std::string reason = "its SHA-256 does not fit";
    try {
      if (!digest.isNull()) {
        if (digest.getString() == row_digest(columns)) return read(columns);
      } else if (database.version() == kSchemaVersion && !database.may_lack_digests(table.name)) {
        reason = "it has no SHA-256";
      } else if (std::all_of(columns.begin(), columns.end(), is_utf8)) {
        return read(columns);
      } else {
        reason = "its texts are no UTF-8";
      }
    } catch (const InputError& error) {
      reason = error.what();
    } catch (const nlohmann::json::exception& error) {
      reason = error.what();
    } catch (const std::logic_error& error) {  // of std::stoll
      reason = error.what();
    }
    damage =
        std::string("the record of ") + table.record + " " + columns[0] + " is damaged: " + reason;
    return std::nullopt;
  }

  /// The same. @throws InputError naming file and record where the row is not as it was written.
  template <class Read>
  auto read(const RecordTable& table, SQLite::Statement& row, Read& read_row) const {
    std::string damage;
    auto record = read(table, row, read_row, damage);
    if (record) return std::move(*record);
    const auto& file = database.file();
    throw InputError(file.string() + ": " + damage +
                     "; put a copy of the file in its place, or take the record out by: nas-run "
                     "verify " +
                     file.parent_path().string() +
                     " --remove, after which the same command makes it again");
  }

  /// Checks every row of a table. @return the keys of damaged ones.
  template <class Read>
  Texts check(const RecordTable& table, Read& read_row, StoreCheck& found) const {
    Texts keys;
    auto row = select(table);
    while (row.executeStep()) {
      std::string damage;
      if (read(table, row, read_row, damage)) {
        ++(row.getColumn(table.size).isNull() ? found.unverified : found.verified);
      } else {
        found.damaged.push_back(damage);
        keys.push_back(row.getColumn(0).getString());
      }
    }
    return keys;
  }

  void remove(const RecordTable& table, const Texts& keys) const {
    const std::string columns = table.columns;
    auto remove = statement(std::string("DELETE FROM ") + table.name + " WHERE " +
                            columns.substr(0, columns.find(',')) + " = ?");
    for (const auto& key : keys) {
      remove.bind(1, key);
      remove.exec();
      remove.reset();
    }
  }
};

namespace {

Database::Mode database_mode(Store::Mode mode) {
  switch (mode) {
    case Store::Mode::write:
      return Database::Mode::write;
    case Store::Mode::write_cheap:
      return Database::Mode::write_relaxed;
    default:
      return Database::Mode::read_only;
  }
}

}  // namespace

Store::Store(const fs::path& file, Mode mode)
    : state_(new State{.database{file, kKind, database_mode(mode)},
                       .cheap = mode == Mode::write_cheap}) {}

Store::~Store() {
  try {
    state_->flush();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // Callers that must know call flush(). What is lost is evaluated again.
  }
}

void Store::flush() {
  const std::lock_guard lock(state_->mutex);
  state_->flush();
}

void Store::require_in_place() const { state_->database.require_in_place(); }

void Store::set_meta(const std::string& key, const nlohmann::json& value) {
  const std::lock_guard lock(state_->mutex);
  state_->in_transaction([&] {
    auto insert = state_->insert(kMeta, "REPLACE");
    write_row(insert, {key, value.dump()});
  });
}

std::optional<nlohmann::json> Store::meta(const std::string& key) const {
  return state_->reading([&]() -> std::optional<nlohmann::json> {
    auto select = state_->select(kMeta, "WHERE key = ?");
    select.bind(1, key);
    if (!select.executeStep()) return std::nullopt;
    return state_->read(kMeta, select, read_meta);
  });
}

void Store::begin_session(const nlohmann::json& environment) {
  auto all = sessions();
  const auto number = static_cast<std::int64_t>(all.size());
  all.push_back({{"environment", environment},
                 {"host", host_name()},
                 {"pid", getpid()},
                 {"started", utc_now()}});
  set_meta("sessions", all);
  const std::lock_guard lock(state_->mutex);
  state_->session = number;
}

std::vector<nlohmann::json> Store::sessions() const {
  std::vector<nlohmann::json> sessions;
  if (const auto recorded = meta("sessions")) {
    sessions = recorded->get<std::vector<nlohmann::json>>();
  } else if (const auto environment = meta("environment")) {
    sessions.push_back({{"environment", *environment}});
  }
  return sessions;
}

std::vector<nlohmann::json> Store::environments() const {
  std::vector<nlohmann::json> environments;
  for (const auto& session : sessions()) {
    const auto& environment = session.at("environment");
    if (std::find(environments.begin(), environments.end(), environment) == environments.end()) {
      environments.push_back(environment);
    }
  }
  return environments;
}

std::optional<Evaluation> Store::find(const std::string& id) const {
  return state_->reading([&]() -> std::optional<Evaluation> {
    auto select = state_->select(kEvaluations, "WHERE id = ?");
    select.bind(1, id);
    if (!select.executeStep()) return std::nullopt;
    return state_->read(kEvaluations, select, read_evaluation);
  });
}

void Store::add(const std::vector<Evaluation>& evaluations) {
  const std::lock_guard lock(state_->mutex);
  state_->in_transaction([&] {
    auto insert = state_->insert(kEvaluations, "IGNORE");
    Texts ids;
    for (const auto& evaluation : evaluations) {
      write_row(insert, evaluation_columns(evaluation, state_->session));
      ids.push_back(evaluation.id);
    }
    if (state_->has_partials()) state_->remove(kPartials, ids);
  });
}

std::optional<Evaluation> Store::find_partial(const std::string& id) const {
  return state_->reading([&]() -> std::optional<Evaluation> {
    if (!state_->has_partials()) return std::nullopt;
    auto select = state_->select(kPartials, "WHERE id = ?");
    select.bind(1, id);
    if (!select.executeStep()) return std::nullopt;
    return state_->read(kPartials, select, read_partial);
  });
}

void Store::add_partials(const std::vector<Evaluation>& partials) {
  if (partials.empty()) return;
  const std::lock_guard lock(state_->mutex);
  state_->in_transaction([&] {
    state_->statement(kPartialsSchema).exec();
    auto better = state_->statement(
        "SELECT 1 FROM evaluations WHERE id = ?1 UNION ALL "
        "SELECT 1 FROM partials WHERE id = ?1 AND step >= ?2");
    auto insert = state_->insert(kPartials, "REPLACE");
    for (const auto& partial : partials) {
      better.bind(1, partial.id);
      better.bind(2, partial.curve.back().step);
      if (!better.executeStep()) write_row(insert, partial_columns(partial, state_->session));
      better.reset();
    }
  });
  state_->partials = true;  // not before it is committed: the table goes with what fails
}

std::vector<Evaluation> Store::partials() const {
  return state_->reading([&] {
    std::vector<Evaluation> partials;
    if (!state_->has_partials()) return partials;
    auto select = state_->select(kPartials, "ORDER BY id");
    while (select.executeStep()) {
      partials.push_back(state_->read(kPartials, select, read_partial));
    }
    return partials;
  });
}

std::vector<Evaluation> Store::evaluations(std::int64_t most) const {
  return state_->reading([&] {
    auto select = state_->select(kEvaluations, "ORDER BY id LIMIT ?");
    select.bind(1, most);
    std::vector<Evaluation> evaluations;
    while (select.executeStep()) {
      evaluations.push_back(state_->read(kEvaluations, select, read_evaluation));
    }
    return evaluations;
  });
}

std::int64_t Store::num_evaluations() const {
  return state_->reading([&] {
    auto count = state_->statement("SELECT count(*) FROM evaluations");
    count.executeStep();
    return count.getColumn(0).getInt64();
  });
}

void Store::each_evaluation(const std::function<void(Evaluation)>& show) const {
  state_->reading([&] {
    auto select = state_->select(kEvaluations, "ORDER BY id");
    while (select.executeStep()) show(state_->read(kEvaluations, select, read_evaluation));
  });
}

std::vector<Evaluation> Store::evaluations_beside(std::vector<Evaluation> known) const {
  return state_->reading([&] {
    auto ids = state_->statement("SELECT id FROM evaluations ORDER BY id");
    auto select = state_->select(kEvaluations, "WHERE id = ?");
    std::vector<Evaluation> evaluations;
    auto next = known.begin();
    while (ids.executeStep()) {
      const auto id = ids.getColumn(0).getString();
      while (next != known.end() && next->id < id) ++next;
      if (next != known.end() && next->id == id) {
        evaluations.push_back(std::move(*next));
        continue;
      }
      select.bind(1, id);
      if (select.executeStep()) {
        evaluations.push_back(state_->read(kEvaluations, select, read_evaluation));
      }
      select.reset();
    }
    return evaluations;
  });
}

namespace {

/// Whether the shorter of two lists is the beginning of the other.
bool begin_alike(const Texts& a, const Texts& b) {
  const auto common = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  return std::equal(a.begin(), a.begin() + common, b.begin());
}

}  // namespace

/// Within a transaction, see Store::add_asks.
void Store::State::write_asks(std::span<const Ask> asks) const {
  auto select = this->select(kAsks, "WHERE number = ?");
  auto insert = this->insert(kAsks, "REPLACE");
  for (const auto& ask : asks) {
    const auto columns = ask_columns(ask);
    bool known = false;
    select.bind(1, ask.number);
    if (select.executeStep()) {
      const auto recorded = read(kAsks, select, read_ask);
      known = ask_columns(recorded) == columns;
      if (recorded.genotype != ask.genotype ||
          !begin_alike(recorded.evaluations, ask.evaluations)) {
        throw std::runtime_error("replay departs from the recorded run at ask " +
                                 std::to_string(ask.number) + ": recorded " + recorded.genotype +
                                 " " + join(recorded.evaluations) + ", now " + ask.genotype + " " +
                                 join(ask.evaluations));
      }
    }
    select.reset();
    if (!known) write_row(insert, columns);
  }
}

void Store::add_asks(const std::vector<Ask>& asks) {
  const std::lock_guard lock(state_->mutex);
  state_->in_transaction([&] { state_->write_asks(asks); });
}

void Store::add_tell(std::int64_t number, const Ask& ask) {
  const std::lock_guard lock(state_->mutex);
  state_->in_transaction([&] {
    state_->write_asks({&ask, 1});
    state_->statement(kTellsSchema).exec();
    auto insert = state_->insert(kTells, "REPLACE");
    write_row(insert, {std::to_string(number), std::to_string(ask.number)});
  });
}

std::vector<std::int64_t> Store::tells() const {
  return state_->reading([&] {
    std::vector<std::int64_t> tells;
    if (!state_->has_tells()) return tells;
    auto select = state_->select(kTells, "ORDER BY number");
    while (select.executeStep()) tells.push_back(state_->read(kTells, select, read_tell));
    return tells;
  });
}

void Store::preview_asks(const std::vector<Ask>& asks) {
  const std::lock_guard lock(state_->mutex);
  state_->in_transaction([&] {
    auto insert = state_->insert(kAsks, "IGNORE");
    for (const auto& ask : asks) write_row(insert, ask_columns(ask));
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

void Store::forget_asks_from(std::int64_t first) {
  const std::lock_guard lock(state_->mutex);
  state_->in_transaction([&] { state_->remove_asks_from(first); });
}

void Store::copy_to(const fs::path& file) const {
  state_->reading([&] {
    auto copy = state_->statement("VACUUM INTO ?");
    copy.bind(1, file.string());
    copy.exec();
  });
}

std::int64_t Store::num_asked() const {
  return state_->reading([&] { return state_->num_asked(); });
}

std::vector<Ask> Store::asks() const {
  return state_->reading([&] {
    auto select = state_->select(kAsks, "ORDER BY number");
    std::vector<Ask> asks;
    AnsweredAsks read(state_->database);
    while (select.executeStep()) asks.push_back(state_->read(kAsks, select, read));
    return asks;
  });
}

/// The number of the first ask of whose evaluations one is not there.
std::optional<std::int64_t> Store::State::first_unanswered() const {
  auto row = select(kAsks, "ORDER BY number");
  AnsweredAsks answered(database);
  while (row.executeStep()) {
    std::string damage;
    const auto ask = read(kAsks, row, read_ask, damage);
    if (ask && answered.missing_of(*ask) != nullptr) return ask->number;
  }
  return std::nullopt;
}

std::int64_t Store::State::num_asked() const {
  auto last = statement("SELECT ifnull(max(number) + 1, 0) FROM asks");
  last.executeStep();
  return last.getColumn(0).getInt64();
}

/// Within a transaction that forgets asks: so many were made within the time of the search, and are
/// made again however much of it is left.
void Store::State::note_asked() const {
  auto select = this->select(kMeta, "WHERE key = ?");
  select.bind(1, std::string(kAskedBefore));
  std::string damage;
  const auto fact = select.executeStep() ? read(kMeta, select, read_meta, damage) : std::nullopt;
  const auto before = fact && fact->is_number_integer() ? fact->get<std::int64_t>() : 0;
  auto insert = this->insert(kMeta, "REPLACE");
  write_row(insert, {kAskedBefore, std::to_string(std::max(before, num_asked()))});
}

/// Within a transaction. With the asks goes what followed from their answers.
void Store::State::remove_asks_from(std::int64_t first) const {
  std::vector<const char*> statements{"DELETE FROM asks WHERE number >= ?",
                                      "DELETE FROM indicators WHERE asked > ?"};
  if (has_tells()) {
    statements.push_back(
        "DELETE FROM tells WHERE number >= (SELECT min(number) FROM tells WHERE ask >= ?)");
  }
  for (const auto* sql : statements) {
    auto removal = statement(sql);
    removal.bind(1, first);
    removal.exec();
  }
  remove(kMeta, {"ended_by", "last_population"});
}

std::int64_t Store::forget_failures() {
  std::set<std::string> failed;
  each_evaluation([&failed](const Evaluation& evaluation) {
    if (may_be_retried(evaluation.status)) failed.insert(evaluation.id);
  });
  if (failed.empty()) return 0;
  const auto is_failed = [&failed](const std::string& id) { return failed.contains(id); };
  const auto baseline = object_of(meta("baseline").value_or(nullptr), "baseline");
  const auto of_baseline = baseline.value("evaluations", std::vector<std::string>());
  const bool without_ranges = std::any_of(of_baseline.begin(), of_baseline.end(), is_failed);
  std::optional<std::int64_t> first;
  for (const auto& ask : asks()) {
    const auto& ids = ask.evaluations;
    if (!without_ranges && std::none_of(ids.begin(), ids.end(), is_failed)) continue;
    first = ask.number;
    break;
  }
  const std::lock_guard lock(state_->mutex);
  state_->in_transaction([&] {
    auto evaluation = state_->statement("DELETE FROM evaluations WHERE id = ?");
    for (const auto& id : failed) {
      evaluation.bind(1, id);
      evaluation.exec();
      evaluation.reset();
    }
    auto meta = state_->statement("DELETE FROM meta WHERE key = ?");
    std::vector<const char*> stale{"tuning", "retest", "finished"};
    if (without_ranges) stale.insert(stale.end(), {"baseline", "objectives"});
    for (const auto* key : stale) {
      meta.bind(1, std::string(key));
      meta.exec();
      meta.reset();
    }
    state_->note_asked();
    if (first) state_->remove_asks_from(*first);
  });
  return static_cast<std::int64_t>(failed.size());
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

void Store::keep_indicators(const std::set<std::int64_t>& asked) {
  const auto known = indicators();
  const std::lock_guard lock(state_->mutex);
  state_->in_transaction([&] {
    auto removal = state_->statement("DELETE FROM indicators WHERE asked = ?");
    for (const auto& indicator : known) {
      if (asked.contains(indicator.asked)) continue;
      removal.bind(1, indicator.asked);
      removal.exec();
      removal.reset();
    }
  });
}

std::vector<Indicator> Store::indicators() const {
  return state_->reading([&] {
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
  });
}

StoreCheck Store::check(bool remove) {
  const std::lock_guard lock(state_->mutex);
  StoreCheck found{.inconsistencies = state_->database.inconsistencies()};
  state_->database.guarded([&] {
    const auto facts = state_->check(kMeta, read_meta, found);
    const auto evaluations = state_->check(kEvaluations, read_evaluation, found);
    AnsweredAsks read_answered(state_->database);
    const auto asks = state_->check(kAsks, read_answered, found);
    const auto tells = state_->has_tells() ? state_->check(kTells, read_tell, found) : Texts();
    Texts partials;
    if (state_->has_partials()) partials = state_->check(kPartials, read_partial, found);
    // Of a file whose pages are inconsistent a write may destroy more.
    if (!remove || found.damaged.empty() || !found.inconsistencies.empty()) return;
    state_->in_transaction([&] {
      state_->remove(kMeta, {"finished"});
      state_->remove(kMeta, facts);
      state_->remove(kEvaluations, evaluations);
      if (!partials.empty()) state_->remove(kPartials, partials);
      // Answers decide what is asked next: from the first one that is gone the next process asks
      // anew, and from the beginning where the order is unknown in which the algorithm heard
      // of them, or by which rules they were made.
      auto first = state_->first_unanswered();
      if (!tells.empty() || std::find(facts.begin(), facts.end(), "answering") != facts.end()) {
        first = std::numeric_limits<std::int64_t>::min();
      }
      state_->note_asked();
      state_->remove(kAsks, asks);
      if (first) state_->remove_asks_from(*first);
    });
  });
  return found;
}

fs::path store_file(const fs::path& store_or_folder) {
  return fs::is_directory(store_or_folder) ? store_or_folder / "store.sqlite" : store_or_folder;
}

}  // namespace nas
