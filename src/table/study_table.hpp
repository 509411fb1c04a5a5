#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "evaluation/measurement.hpp"
#include "genotype/search_space.hpp"
#include "search/objective_set.hpp"
#include "table/replay.hpp"
#include "table/table.hpp"

namespace nas {

/// What a problem answers to the n-th evaluation of a candidate, as an evaluator takes it: what it
/// throws is a failure.
/// @param until  a rung; 0: at its end.
Evaluation answer_of(Measurement& problem, const Candidate& candidate, std::int64_t n,
                     std::int64_t until = 0);

/// A table as one study sees it: what the objectives make of every cell is worked out once, so that
/// an ask costs a look-up. Immutable; any number of searches use it at the same time.
class StudyTable {
 public:
  /// What is searched, and by which problem.
  struct Study {
    SearchSpace space;
    ObjectiveSet objectives;  ///< with their ranges
    ReplayMode mode = ReplayMode::noisy;
    /// On the same table and in the same mode. It is asked for all replicates that there are, by
    /// their own numbers (see Replay), and then no more.
    std::shared_ptr<Measurement> problem;
    std::set<std::int64_t> rungs{};  ///< of searches by rungs
  };
  /// What one evaluation answers.
  struct Cell {
    std::vector<double> fitness;  ///< objectives in order, in minimisation form, finite
    Status status = Status::failed;
    bool untrained = false;  ///< rejected or failed before any training
    bool rejected = false;   ///< by a constraint, before any training
    double seconds = 0.0;    ///< of training, charged
    std::int64_t steps = 0;  ///< of training
    bool feasible = true;    ///< of one that is paused: whether it meets the constraints there
  };

  /// @throws InputError if the space has a mechanism that the table has not.
  StudyTable(Table table, Study study);

  [[nodiscard]] const Table& table() const { return table_; }
  [[nodiscard]] const SearchSpace& space() const { return study_.space; }
  [[nodiscard]] const ObjectiveSet& objectives() const { return study_.objectives; }
  [[nodiscard]] ReplayMode mode() const { return study_.mode; }
  /// Of a whole training run.
  [[nodiscard]] std::int64_t steps() const { return study_.problem->steps(); }

  /// Number of the mechanism that a genotype names. @throws InputError if there is none.
  [[nodiscard]] std::int64_t mechanism(const Genotype& genotype) const;
  /// What one replicate answers; under mode `mean`, the mean of all whichever is asked for.
  /// @param until  a rung; 0: at its end.
  [[nodiscard]] const Cell& cell(std::int64_t mechanism, std::int64_t replicate,
                                 std::int64_t until = 0) const;
  /// See Measurement::expected_cost.
  [[nodiscard]] double expected_cost(std::int64_t mechanism) const {
    return costs_[static_cast<std::size_t>(mechanism)];
  }
  /// What several replicates answer together.
  [[nodiscard]] Judgement judge(std::int64_t mechanism,
                                std::span<const std::int64_t> replicates) const;

  /// What all replicates of a mechanism that answer searches answer together.
  [[nodiscard]] std::vector<double> believed(std::int64_t mechanism) const;

 private:
  void read_mechanism(std::int64_t mechanism);
  void find_combinations();
  [[nodiscard]] std::int64_t find(const Genotype& genotype) const;
  [[nodiscard]] std::int64_t num_cells() const;
  [[nodiscard]] std::size_t index(std::int64_t mechanism, std::int64_t replicate) const;

  Table table_;
  Study study_;
  std::vector<Evaluation> evaluations_;  ///< mechanism by mechanism; under `mean` one each
  std::map<std::int64_t, std::vector<Cell>> cells_;  ///< likewise, by rung, 0: the end
  std::vector<double> costs_;                        ///< of mechanisms
  /// Mechanisms by combination of the categorical genes; empty where a real gene varies.
  std::vector<std::int64_t> combinations_;
};

}  // namespace nas
