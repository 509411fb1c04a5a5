#pragma once

#include <memory>
#include <string>

#include "core/visibility.hpp"
#include "genotype/search_space.hpp"

namespace NAS_PUBLIC nas {

struct Architecture;

/// A candidate in its canonical form: what travels from a search to whatever measures it. Records
/// and configurations hold its name alone, which is parsed where it comes in (Measurement::parse).
struct Candidate {
  std::string name;     ///< equal for candidates that are the same function
  Genotype genotype{};  ///< the same, gene by gene
  /// Why there is no such model, by the rule that its genes break; empty if there is one. Such a
  /// candidate is recorded as rejected and never measured.
  std::string refusal{};
  /// The model that it is, where it is one of an architecture, and that would be built; of a
  /// candidate with a refusal what the rules of the canonical form leave.
  std::shared_ptr<const Architecture> architecture{};
};

}  // namespace nas
