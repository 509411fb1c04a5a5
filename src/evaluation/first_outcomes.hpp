#pragma once

#include <map>
#include <span>
#include <string>

#include "evaluation/measurement.hpp"

namespace nas {

/// Watches what the first measurements of a process come to, in the order in which they begin:
/// where none of them succeeds, the next hundred will not either. What a constraint rejects did not
/// fail.
class FirstOutcomes {
 public:
  void begin(std::span<const Assignment> array);
  /// @param evaluation  that somebody made before.
  void recall(const Evaluation& evaluation);
  /// @param array  measured, or screened out without a beginning.
  /// @throws MachineError, with the reasons, once the first ten have failed.
  void finish(std::span<const Assignment> array);

 private:
  bool succeeded_ = false;
  std::map<std::string, std::string> outcomes_;  ///< of the first ones, by id; empty: not there yet
};

}  // namespace nas
