#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/visibility.hpp"
#include "search/problem.hpp"
#include "study/session/ranges.hpp"

namespace NAS_PUBLIC nas {

/// How much of a space is models, and of these satisfies the constraints that a formula decides:
/// known before anything runs.
struct Feasibility {
  /// A constraint by itself.
  struct Part {
    std::string text;  ///< "flops <= 4e+06"
    bool at_most = true;
    std::int64_t passing = 0;  ///< combinations that satisfy it
    double least = 0.0;        ///< values of its quantity
    double most = 0.0;
  };

  std::int64_t combinations = 0;  ///< looked at
  std::int64_t models = 0;        ///< those that are models (Candidate::refusal)
  std::int64_t passing = 0;       ///< of these those that satisfy all constraints
  std::string refusal{};          ///< why the first of the others is none
  bool whole = true;  ///< whether these are all of the space, else random ones, drawn uniformly
  std::vector<Part> parts;  ///< none where no constraint is decided by a formula

  /// "300 of 384 combinations are models, others are rejected: kv_heads = 3, must ..."; of random
  /// ones the share with its interval as below.
  [[nodiscard]] std::string models_text() const;
  /// "96 of 384 combinations satisfy flops <= 4e+06"; of random ones the share with its 95 % interval (Clopper & Pearson 1934).
  [[nodiscard]] std::string text() const;
  /// @throws InputError naming what excludes all if no combination of the whole space passes, or none is a model.
  void require_any() const;

 private:
  /// "96 of 384 combinations WHAT"
  [[nodiscard]] std::string counted(std::int64_t number, const std::string& what) const;
};

/// @param shown  of the space, by the same problem.
/// @return nothing where all are models and no constraint is decided by a formula.
std::optional<Feasibility> feasibility(const ObjectiveSet& objectives, const ShownCandidates& shown,
                                       const Problem& problem);

/// @return a warning for people if a baseline is no model or breaks a constraint that a formula
/// decides, so that it will not be trained; empty otherwise.
std::string baseline_warning(const ObjectiveSet& objectives, const std::string& baseline,
                             const Problem& problem);

}  // namespace nas
