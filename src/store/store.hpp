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

/// One question of the algorithm: the n-th candidate it asked for, and the evaluation that answered
/// it.
struct Ask {
  std::int64_t number = 0;  ///< 0, 1, ... in ask order
  std::int64_t batch = 0;   ///< asks made together; a generation, for generational algorithms
  std::string genotype;     ///< as asked, before canonicalisation: for lineage and reports
  std::string evaluation;   ///< id of the evaluation
  bool reused = false;  ///< answered by an evaluation that an earlier ask of this run had caused
  std::vector<double> fitness;
};

/// The record of a run: one SQLite file (WAL), one writer. Every finished evaluation is durable
/// when add() returns. Thread-safe. Schema: store/schema.sql; its version is checked on opening.
class Store {
 public:
  /// Opens or creates the file. @throws InputError if it is not a store of this version, or another
  /// process holds it for writing (the message names its process id and host).
  enum class Mode { write, read_only };
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
  /// evaluation.
  /// @throws std::runtime_error "replay departs from the recorded run at ask N: ..." otherwise.
  void add_asks(const std::vector<Ask>& asks);
  [[nodiscard]] std::vector<Ask> asks() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nas
