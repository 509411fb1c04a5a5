#pragma once

#include <map>
#include <span>
#include <string>

#include "store/evaluation.hpp"

namespace nas {

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
  /// @throws MachineError, with the reasons, once the first ten have failed.
  void finish(std::span<const Evaluation> evaluations);

 private:
  bool succeeded_ = false;
  std::map<std::string, std::string> outcomes_;  ///< of the first ones, by id; empty: not there yet
};

}  // namespace nas
