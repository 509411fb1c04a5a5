#pragma once

#include <vector>

#include "config/document.hpp"
#include "search/objective_set.hpp"

namespace nas {

/// Reads `objectives` (names, or maps with `name` and the objective's settings) and `constraints`
/// ("flops <= 4e6").
///
/// @param objectives   the list, or nullptr: all of the problem's own, or perplexity.
/// @param constraints  the list, or nullptr: none.
/// @param own          the problem's own objectives; empty: those of the registry.
/// @param diagnostics  receives every mistake.
ObjectiveSet read_objectives(const DocumentNode* objectives, const DocumentNode* constraints,
                             const std::vector<ChosenObjective>& own, Diagnostics& diagnostics);

/// Settings of an item of `objectives` that belong to no objective.
std::vector<Setting> objective_settings();

/// `objectives` and `constraints` as they could be written with nothing left to a default.
nlohmann::json resolved_objectives(const ObjectiveSet& set);
nlohmann::json resolved_constraints(const ObjectiveSet& set);

}  // namespace nas
