#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <span>
#include <string>

#include "core/error.hpp"
#include "store/evaluation.hpp"

namespace nas {

/// So much of a run has failed that going on is vain until a person has looked.
class TooManyFailures : public MachineError {
 public:
  using MachineError::MachineError;
};

/// Watches what the measurements of a process come to. What a constraint rejects did not fail.
///
/// The first ones, in the order in which they begin: where none of them succeeds, the next hundred
/// will not either. And the latest distinct candidates: one of them has failed where any of its
/// replicates has no quality.
class Outcomes {
 public:
  /// @param window  that many of the latest candidates; 0: these are not watched.
  explicit Outcomes(std::size_t window) : window_(window) {}
  /// @param ids  of evaluations that begin together.
  void begin(std::span<const std::string> ids);
  /// @param evaluation  that was made before.
  void recall(const Evaluation& evaluation);
  /// @param evaluations  that finished together, or one that was screened out before it began.
  /// @throws TooManyFailures, with the reasons, once the first ten have failed, or more than half of
  /// a whole window.
  void finish(std::span<const Evaluation> evaluations);

 private:
  void finish_first(std::span<const Evaluation> evaluations);
  void finish_latest(std::span<const Evaluation> evaluations);

  bool succeeded_ = false;
  std::map<std::string, std::string> outcomes_;  ///< of the first ones, by id; empty: not there yet
  struct Outcome {
    std::string candidate;
    std::string failure{};  ///< status and reason; empty: none
  };
  std::size_t window_;
  std::deque<Outcome> latest_{};
};

}  // namespace nas
