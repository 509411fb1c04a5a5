#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/visibility.hpp"
#include "genotype/search_space.hpp"
#include "store/evaluation.hpp"

namespace NAS_PUBLIC nas {

/// The answer to one ask.
struct Answer {
  std::string candidate;           ///< canonical name
  std::vector<double> fitness;     ///< objectives in order, in minimisation form, finite
  Status status = Status::failed;  ///< of the candidate, see Judgement
  std::int64_t earlier_asks = 0;   ///< for the same candidate in this run
  bool feasible = true;  ///< of one that is paused: whether it meets the constraints there
};

/// The answer to an ask that was out beside others.
struct Told {
  std::int64_t begun = 0;  ///< which of all that have begun, from 0
  Answer answer;
};

/// In which order such answers are told.
enum class TellOrder {
  virtual_time,  ///< as workers that are all alike would finish, see VirtualOrder
  arrival,       ///< as they are there
};

/// Answers the asks of a search algorithm, within a budget: as batches, or one by one with others
/// out.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  /// Evaluates candidates asked for together. @return their answers in order: fewer than asked for
  /// where the budget ends the search, none once it is spent.
  /// @throws StopRequested when a stop was asked for: what was finished by then is committed.
  virtual std::vector<Answer> ask(const std::vector<Genotype>& batch) = 0;
  /// Begins to evaluate a candidate while others are out.
  /// @param until  validation step at which it pauses, 0: it does not. One that paused before, and
  /// was told, goes on from there.
  /// @param anyway  whatever the budget says, of one that goes on.
  /// @return whether the budget allows it; once it does not, nothing else begins.
  /// @throws StopRequested as ask() does.
  virtual bool begin(const Genotype& genotype, std::int64_t until = 0, bool anyway = false) = 0;
  /// Waits for an answer to what has begun. @return nothing where none is out.
  /// @throws StopRequested as ask() does.
  virtual std::optional<Told> next(TellOrder order) = 0;
  /// Asks that are answered.
  [[nodiscard]] virtual std::int64_t num_asked() const = 0;
  /// Evaluations that these have caused, without those that a constraint rejected before training.
  [[nodiscard]] virtual std::int64_t num_evaluated() const = 0;
  [[nodiscard]] virtual std::int64_t num_batches() const = 0;
  /// What ended the search: "500 evaluations"; empty while the budget lasts.
  [[nodiscard]] virtual std::string spent() const = 0;
};

}  // namespace nas
