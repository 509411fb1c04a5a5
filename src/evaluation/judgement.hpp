#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/visibility.hpp"
#include "store/replicates.hpp"

namespace NAS_PUBLIC nas {

/// The joint result of a candidate's replicates.
struct Judgement {
  /// Of the candidate: ok if every replicate is and no constraint is broken; stopped_early if a
  /// replicate was. Only these two are usable.
  Status status = Status::failed;
  std::string reason{};  ///< why it is not ok; empty if ok
  /// Objectives in order, in minimisation form, finite; a penalty where it is not usable.
  std::vector<double> fitness{};
  /// The same as measured, constraints aside; empty where no replicate is usable.
  std::vector<double> measured{};
};

/// Judges the replicates of a candidate.
using Judge = std::function<Judgement(Replicated)>;

}  // namespace nas
