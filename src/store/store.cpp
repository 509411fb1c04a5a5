#include "store/store.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>

#include <unistd.h>

#include "core/error.hpp"
#include "core/host.hpp"
#include "store/ask_rows.hpp"
#include "store/database.hpp"
#include "store/rows.hpp"

namespace nas {

namespace {

namespace fs = std::filesystem;

void write_row(SQLite::Statement& insert, const Texts& columns) {
  int i = 0;
  for (const auto& column : columns) insert.bind(++i, column);
  const auto digest = row_digest(columns);
  insert.bind(++i, static_cast<const void*>(digest.data()), static_cast<int>(digest.size()));
  insert.exec();
  insert.reset();
}

}  // namespace

struct Store::State {
  std::mutex mutex{};
  Database database;
  bool cheap = false;
  std::optional<bool> partials{};               ///< whether they have a table, if known
  std::optional<std::int64_t> session{};        ///< of this process
  std::optional<Database::Transaction> open{};  ///< cheap: what is not committed yet
  std::chrono::steady_clock::time_point opened{};
  std::exception_ptr lost{};  ///< why what was not committed yet is gone

  /// Whether there is a table of partial training runs. Only this process makes one.
  [[nodiscard]] bool has_partials() {
    if (!partials) partials = database.has_table(kPartials.name);
    return *partials;
  }

  /// Does what `write` does in one transaction. Cheap writes share one for a fifth of a second.
  template <class Write>
  void in_transaction(Write write) {
    constexpr std::chrono::milliseconds kLongest{200};
    if (!cheap) return database.transact(write);
    keeping([&] {
      if (!open) {
        open.emplace(database);
        opened = std::chrono::steady_clock::now();
      }
      write();
    });
    if (std::chrono::steady_clock::now() - opened >= kLongest) flush();
  }

  /// The same of what evaluations tell again: it waits for no disk. The next evaluation makes it
  /// durable; a failure of power before that takes the end of what was written, in its order.
  template <class Write>
  void show(Write write) {
    if (cheap) return in_transaction(write);
    database.wait_for_disk(false);
    try {
      database.transact(write);
    } catch (...) {
      database.wait_for_disk(true);
      throw;
    }
    database.wait_for_disk(true);
  }

  void flush() {
    if (open || lost) keeping([this] { open->commit(); });
    open.reset();
  }

  /// Does `work` of the shared transaction. Where SQLite rolls that back, as on a full disk, earlier
  /// writes are gone: nothing is written after them, and all who ask are told why.
  template <class Work>
  void keeping(Work work) {
    if (lost) std::rethrow_exception(lost);
    try {
      database.guarded(work);
    } catch (...) {
      if (open && !database.in_transaction()) {
        lost = std::current_exception();
        open.reset();
      }
      throw;
    }
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
    return statement(std::string("SELECT ") + table.columns + ", digest FROM " + table.name + " " +
                     rest);
  }

  [[nodiscard]] bool has_tells() const { return database.has_table(kTells.name); }

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
    std::string reason = digest.isNull() ? "it has no SHA-256" : "its SHA-256 does not fit";
    try {
      if (digest.getString() == row_digest(columns)) return read(columns);
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
        ++found.verified;
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
    : state_(new State{.database{file, kStoreKind, database_mode(mode)},
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
  return meta("sessions").value_or(nlohmann::json::array());
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
  AskRows rows(database);
  auto read_row = [&rows](const Texts& columns) { return rows.read(columns); };
  for (const auto& ask : asks) {
    const auto columns = rows.columns(ask);
    bool known = false;
    select.bind(1, ask.number);
    if (select.executeStep()) {
      const auto recorded = read(kAsks, select, read_row);
      known = rows.columns(recorded) == columns;
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
  state_->show([&] { state_->write_asks(asks); });
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
  state_->show([&] {
    auto insert = state_->insert(kAsks, "IGNORE");
    AskRows rows(state_->database);
    for (const auto& ask : asks) write_row(insert, rows.columns(ask));
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
    AskRows read(state_->database);
    while (select.executeStep()) asks.push_back(state_->read(kAsks, select, read));
    return asks;
  });
}

/// The number of the first ask of whose evaluations one is not there.
std::optional<std::int64_t> Store::State::first_unanswered() const {
  auto row = select(kAsks, "ORDER BY number");
  AskRows answered(database);
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
  const auto baseline = meta("baseline").value_or(nlohmann::json::object());
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
    std::vector<const char*> stale{"retest", "finished"};
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
  state_->show([&] {
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
    AskRows read_answered(state_->database);
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
