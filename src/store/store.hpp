#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "store/evaluation.hpp"

namespace nas {

/// One question of the algorithm: the n-th candidate it asked for, and the evaluations that
/// answered it.
struct Ask {
  std::int64_t number = 0;  ///< 0, 1, ... in ask order
  std::int64_t batch = 0;   ///< asks made together; a generation, for generational algorithms
  std::string genotype;     ///< as asked, before canonicalisation: for lineage and reports
  std::vector<std::string> evaluations{};  ///< ids: the replicates, at least one
  bool reused = false;                     ///< answered by what earlier asks of this run had caused
  std::vector<double> fitness;             ///< objectives in order, in minimisation form
};

/// How far a search had come after a number of asks.
struct Indicator {
  std::int64_t asked = 0;
  std::int64_t batch = 0;
  std::int64_t evaluated = 0;  ///< evaluations that the asks have caused
  std::int64_t front = 0;      ///< non-dominated candidates
  double value = 0.0;          ///< hypervolume; with one objective the best value
};

/// The record of a run: one SQLite file (WAL), one writer. Every finished evaluation is durable
/// when add() returns. Thread-safe. Schema: store/schema.sql; its version is checked on opening.
class Store {
 public:
  /// Opens or creates the file. @throws InputError if it is not a store of this version, or another
  /// process holds it for writing (the message names its process id and host).
  enum class Mode {
    write,
    /// As write, but what was added in the last moments may be lost with the process: for
    /// evaluations that cost less than a disk's answer, which are made again.
    write_cheap,
    read_only,
  };
  explicit Store(const std::filesystem::path& file, Mode mode = Mode::write);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Free-form facts about the run: "config" (resolved YAML as JSON), "version", "baseline",
  /// "corpus", ...
  void set_meta(const std::string& key, const nlohmann::json& value);
  [[nodiscard]] std::optional<nlohmann::json> meta(const std::string& key) const;

  [[nodiscard]] std::optional<Evaluation> find(const std::string& id) const;
  /// Commits evaluations in one transaction; an id that is known already is left as it is.
  void add(const std::vector<Evaluation>& evaluations);
  /// All evaluations, in order of id.
  [[nodiscard]] std::vector<Evaluation> evaluations() const;

  /// Commits asks in one transaction; a number that is known already must agree in genotype and
  /// evaluations. Only their number may differ, which replaces the ask: a race that the budget cut
  /// short goes on under a larger one.
  /// @throws std::runtime_error "replay departs from the recorded run at ask N: ..." otherwise.
  void add_asks(const std::vector<Ask>& asks);
  /// Commits asks of a batch that is not answered yet, as far as they are answered; a number that
  /// is known already is left as it is. add_asks() has the last word.
  void preview_asks(const std::vector<Ask>& asks);
  /// Takes back the asks of a batch from a number on, which the end of the budget left unanswered;
  /// nothing where later batches are recorded.
  void withdraw_asks(std::int64_t from, std::int64_t batch);
  /// In order of their numbers. While a batch is being answered, some of its numbers may lack.
  [[nodiscard]] std::vector<Ask> asks() const;

  /// Commits an indicator, in place of one for as many asks.
  void add_indicator(const Indicator& indicator);
  [[nodiscard]] std::vector<Indicator> indicators() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nas
