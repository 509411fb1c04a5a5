#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "core/visibility.hpp"
#include "genotype/search_space.hpp"
#include "search/problem.hpp"

namespace NAS_PUBLIC nas {

/// Genotypes that show every combination of the categorical genes, each once, where there are at
/// most 20,000; else as many random ones. Real genes have their least value in the former.
std::vector<Genotype> shown_combinations(const SearchSpace& space);

/// The candidates that these genotypes are.
struct ShownCandidates {
  std::vector<Candidate> candidates;
  bool whole = true;  ///< every combination, once; else random ones
};
/// Up to 20,000 combinations of the categorical genes all of them, else as many random ones. Where
/// one is no model, for another reason at the largest values of its real genes, or for none, these
/// decide: then 20,000 random genotypes are shown. Cost: up to a second.
ShownCandidates shown_candidates(const SearchSpace& space, const Problem& problem);

/// Sets the ranges that can be known before anything is trained: what an objective expects of the
/// problem's facts; for one by formula its least and largest value over candidates of the space.
/// Those by formula stay open where none are shown: nothing is searched.
///
/// @param shown  of the space, by the same problem.
/// @throws InputError if an objective is unavailable here, is the same for the whole space, or is
/// computed of no combination since none is a model.
void set_expected_ranges(ObjectiveSet& objectives, const ShownCandidates& shown,
                         const Problem& problem, const nlohmann::json& facts);

/// Sets the ranges that are still open: between 0 and twice the baseline's value.
/// @param baseline  its replicates; at least one usable, else @throws InputError.
void set_ranges_from_baseline(ObjectiveSet& objectives, Objective::Evaluations baseline);

/// Sets ranges as an earlier process recorded them (ObjectiveSet::record).
void set_recorded_ranges(ObjectiveSet& objectives, const nlohmann::json& record);

}  // namespace nas
