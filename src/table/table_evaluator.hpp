#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/evaluator.hpp"
#include "evaluation/ledger.hpp"
#include "evaluation/virtual_order.hpp"
#include "table/comparison_store.hpp"
#include "table/replay.hpp"
#include "table/study_table.hpp"

namespace nas {

/// Answers the asks of one search from a table in memory, as a RecordingEvaluator would on the
/// problem `tabular` with the same seed, and keeps what was asked for and seen. Nothing is written.
class TableEvaluator final : public Evaluator {
 public:
  struct Options {
    Repeated repeated = Repeated::reuse;
    std::int64_t replicates = 1;  ///< evaluations of a candidate for one ask
    Budget budget{};
    /// Mechanism of which as many evaluations were made before the search: they are charged when
    /// they are asked for, but wait for no time.
    std::optional<std::int64_t> baseline{};
    std::optional<Draw> draw{};  ///< that answers in place of the recorded table
  };

  /// @param table  outlives the evaluator.
  /// @param seed   of the search: decides which recorded replicates answer.
  TableEvaluator(const StudyTable& table, std::uint64_t seed, const Options& options);

  std::vector<Answer> ask(const std::vector<Genotype>& batch) override;
  bool begin(const Genotype& genotype, std::int64_t until = 0, bool anyway = false) override;
  /// @param order  virtual_time: a table's answers arrive at once.
  std::optional<Told> next(TellOrder order) override;

  [[nodiscard]] std::int64_t num_asked() const override;
  [[nodiscard]] std::int64_t num_evaluated() const override;
  [[nodiscard]] std::int64_t num_batches() const override { return batches_; }
  [[nodiscard]] std::string spent() const override { return ledger_.spent(); }

  /// Takes out what was asked for and seen.
  [[nodiscard]] Trajectory take_trajectory() { return std::move(trajectory_); }

 private:
  /// What an evaluation has taken so far.
  struct Spent {
    bool paused = false;
    std::int64_t steps = 0;
    double seconds = 0.0;
  };
  /// What this search has had of a mechanism.
  struct Known {
    Ledger::Account account{};
    std::vector<std::int64_t> replicates{};  ///< of the table, in the order of evaluation
    std::int64_t there = 0;                  ///< of these; the time ended before the others
    Spent first{};                           ///< what the first of them has taken, asked one by one
    std::vector<double> whole{};             ///< the answer at the end, asked by rungs; empty: none
  };
  /// An ask whose evaluations are decided, but perhaps not there yet.
  struct Pending {
    std::int64_t mechanism;
    Replicates replicates;
    std::int64_t earlier_asks;
    std::int64_t until = 0;  ///< where its only evaluation pauses
    bool goes_on = false;    ///< from where it was paused
    std::int64_t steps = 0;  ///< of training that each evaluation is charged
    /// What its evaluations have taken for this ask.
    std::int64_t taken_steps = 0;
    std::vector<double> taken_seconds{};
  };
  /// The n-th evaluation of a mechanism.
  struct Further {
    std::int64_t mechanism;
    std::int64_t n;
  };

  std::vector<Pending> assign(const std::vector<Genotype>& batch, std::vector<Further>& further);
  std::optional<Pending> assign(const Genotype& genotype, std::vector<Further>& further,
                                std::int64_t until = 0, bool anyway = false);
  void evaluate(std::vector<Further> further);
  [[nodiscard]] bool waits_for_time(const Further& further) const;
  void look_up(const Further& further);
  [[nodiscard]] std::int64_t num_trainings(const Pending& ask) const;
  [[nodiscard]] const StudyTable::Cell& cell(const Further& further, std::int64_t until = 0) const;
  void take(Pending& ask);
  [[nodiscard]] bool is_rejected(std::int64_t mechanism) const;
  Answer answer(const Pending& ask);

  const StudyTable& table_;
  Replay replay_;
  Options options_;
  std::vector<Known> known_;  ///< by mechanism
  Trajectory trajectory_;
  Ledger ledger_;
  std::map<std::int64_t, Pending> out_;  ///< begun one by one and not told, by number
  VirtualOrder virtual_order_;
  std::int64_t begun_ = 0;
  std::int64_t batches_ = 0;
};

}  // namespace nas
