#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/visibility.hpp"
#include "store/evaluation.hpp"

namespace NAS_PUBLIC nas {

/// A fact of the record: so many asks were made within the time of the search before some were
/// forgotten, to be made again however much of it is left.
inline constexpr const char* kAskedBefore = "asked_before";

/// One question of the algorithm: the n-th candidate it asked for, and the evaluations that
/// answered it.
struct Ask {
  std::int64_t number = 0;  ///< 0, 1, ... in ask order
  std::int64_t batch = 0;   ///< asks made together; a generation, for generational algorithms
  std::string genotype;     ///< as asked, before canonicalisation: for lineage and reports
  std::vector<std::string> evaluations{};  ///< ids: the replicates, at least one
  bool reused = false;                     ///< answered by what earlier asks of this run had caused
  std::vector<double> fitness;             ///< objectives in order, in minimisation form
  std::int64_t until = 0;  ///< validation step at which the evaluation was to pause; 0: its end
};

/// The progress of a search after a number of asks.
struct Indicator {
  std::int64_t asked = 0;
  std::int64_t batch = 0;
  std::int64_t evaluated = 0;  ///< evaluations that the asks have caused
  std::int64_t front = 0;      ///< non-dominated candidates
  double value = 0.0;          ///< hypervolume; with one objective the best value
};

/// What a check of a whole store found.
struct StoreCheck {
  std::string inconsistencies{};       ///< of the file, as SQLite says it, a line each
  std::int64_t verified = 0;           ///< records whose SHA-256 fits
  std::vector<std::string> damaged{};  ///< what is wrong with a record, one each
};

/// The record of a run: one SQLite file, opened as Database says, one writer. Every finished
/// evaluation is durable when add() returns. Thread-safe.
///
/// Every call throws InputError where the file is damaged, naming the record, and MachineError
/// where the machine cannot read or write it, or where it vanished.
class Store {
 public:
  enum class Mode {
    write,
    /// As write, but what was added in the last moments may be lost with the process: for
    /// evaluations that cost less than a disk's answer, which are made again.
    write_cheap,
    read_only,
  };
  /// Opens or (for writing) creates the file. @throws InputError if it is not a store of this
  /// version, or another process holds it for writing (the message names its process id and host).
  explicit Store(const std::filesystem::path& file, Mode mode = Mode::write);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Commits what write_cheap has not committed yet, as the destructor tries to.
  void flush();
  /// @throws MachineError if the file that is written to is no longer the one of its name.
  void require_in_place() const;

  /// Free-form facts about the run: "config" (resolved YAML as JSON), "version", "baseline",
  /// "corpus", ...
  void set_meta(const std::string& key, const nlohmann::json& value);
  [[nodiscard]] std::optional<nlohmann::json> meta(const std::string& key) const;

  /// Appends to the sessions of the run: a process begins to work on it. Evaluations that are added
  /// from now on say which session made them: its place in the list is `session` of `measured`.
  /// @param environment  what its numbers depend on besides the configuration.
  void begin_session(const nlohmann::json& environment);
  /// All sessions in order: {"environment", "host", "pid", "started"} each, UTC.
  [[nodiscard]] std::vector<nlohmann::json> sessions() const;
  /// Their different environments, in order of the first session each.
  [[nodiscard]] std::vector<nlohmann::json> environments() const;

  [[nodiscard]] std::optional<Evaluation> find(const std::string& id) const;
  /// Commits evaluations in one transaction; an id that is known already is left as it is.
  void add(const std::vector<Evaluation>& evaluations);
  /// The longest part of an unfinished training run that is known, `paused`; nothing once its
  /// evaluation is there.
  [[nodiscard]] std::optional<Evaluation> find_partial(const std::string& id) const;
  /// Commits such parts in one transaction: in place of shorter ones, and not where a longer one or
  /// the evaluation is known. add() removes them.
  void add_partials(const std::vector<Evaluation>& partials);
  /// All of them, in order of id.
  [[nodiscard]] std::vector<Evaluation> partials() const;
  /// All evaluations, in order of id; not more than `most`.
  [[nodiscard]] std::vector<Evaluation> evaluations(
      std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  /// How many there are; none is read.
  [[nodiscard]] std::int64_t num_evaluations() const;
  /// Shows them one after the other, so that no more than one is in memory. @param show  must not
  /// call this store.
  void each_evaluation(const std::function<void(Evaluation)>& show) const;

  /// Commits asks in one transaction; a number that is known already must agree in genotype and
  /// evaluations. Only their number may differ, which replaces the ask: a race that the budget cut
  /// short goes on under a larger one, where others may come out of it sooner.
  /// @throws std::runtime_error "replay departs from the recorded run at ask N: ..." otherwise.
  void add_asks(const std::vector<Ask>& asks);
  /// Commits asks of a batch that is not answered yet, as far as they are answered; a number that
  /// is known already is left as it is. add_asks() has the last word.
  void preview_asks(const std::vector<Ask>& asks);
  /// Takes back the asks of a batch from a number on, which the end of the budget left unanswered;
  /// nothing where later batches are recorded.
  void withdraw_asks(std::int64_t from, std::int64_t batch);
  /// Forgets the asks from a number on, which another search has asked for that began alike, and
  /// what was recorded of the search since. Evaluations stay.
  void forget_asks_from(std::int64_t first);
  /// Writes what is committed to a file that is not there. Not within a transaction of flush().
  void copy_to(const std::filesystem::path& file) const;
  /// One more than the number of the last ask.
  [[nodiscard]] std::int64_t num_asked() const;
  /// In order of their numbers. While a batch is being answered, some of its numbers may be
  /// missing.
  /// @throws InputError also where one names an evaluation of which no part is recorded.
  [[nodiscard]] std::vector<Ask> asks() const;

  /// Commits an ask as add_asks() does, and that the algorithm hears of it after so many others
  /// that were out with it.
  void add_tell(std::int64_t number, const Ask& ask);
  /// The numbers of asks in the order in which the algorithm heard of them, where that is recorded.
  [[nodiscard]] std::vector<std::int64_t> tells() const;

  /// Forgets the evaluations that failed or ran out of memory, in one transaction: they are made
  /// again when they are asked for. With them go the asks from the first one on that they answer,
  /// and what was recorded of the search since: answers decide what is asked next. Other
  /// evaluations stay. Where the baseline failed, the objectives' ranges, which it set, go too.
  /// How many asks there were is kept as the fact kAskedBefore.
  /// @return how many evaluations.
  std::int64_t forget_failures();

  /// Commits an indicator, in place of one for as many asks.
  void add_indicator(const Indicator& indicator);
  /// Forgets all indicators but those after so many asks.
  void keep_indicators(const std::set<std::int64_t>& asked);
  [[nodiscard]] std::vector<Indicator> indicators() const;

  /// Reads every record. @param remove  whether to remove the damaged ones; not of a file that is
  /// itself inconsistent. With an evaluation go the asks from the first one on that it answers, as
  /// in forget_failures(); with what says how answers were made or heard, all asks.
  StoreCheck check(bool remove = false);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The file of a run's store: of a folder, its store.sqlite.
std::filesystem::path store_file(const std::filesystem::path& store_or_folder);

}  // namespace nas
