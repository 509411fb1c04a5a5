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

/// Watches what the first measurements of a process come to, in the order in which they begin:
/// where none of them succeeds, the next hundred will not either. What a constraint rejects did not
/// fail.
class FirstOutcomes {
 public:
  /// @param ids  of evaluations that begin together.
  void begin(std::span<const std::string> ids);
  /// @param evaluation  that somebody made before.
  void recall(const Evaluation& evaluation);
  /// @param evaluations  that finished together, or one that was screened out before it began.
  /// @throws TooManyFailures, with the reasons, once the first ten have failed.
  void finish(std::span<const Evaluation> evaluations);

 private:
  bool succeeded_ = false;
  std::map<std::string, std::string> outcomes_;  ///< of the first ones, by id; empty: not there yet
};

/// Watches the distinct candidates that a process has measured of late. One of them has failed
/// where any of its replicates has no quality, for another reason than a constraint.
class LatestOutcomes {
 public:
  /// @param window  that many candidates; 0: watches nothing.
  explicit LatestOutcomes(std::size_t window) : window_(window) {}
  /// @param evaluations  that finished together, or one that was screened out.
  /// @throws TooManyFailures, with the reasons, where more than half of a whole window failed.
  void finish(std::span<const Evaluation> evaluations);

 private:
  struct Outcome {
    std::string candidate;
    std::string failure{};  ///< status and reason; empty: none
  };
  std::size_t window_;
  std::deque<Outcome> latest_{};
};

}  // namespace nas
