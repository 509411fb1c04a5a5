#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/visibility.hpp"
#include "study/reader/experiment.hpp"
#include "table/comparison_store.hpp"

namespace NAS_PUBLIC nas {

/// One search algorithm of a comparison: an experiment of which every other one differs in nothing
/// but its algorithm, in how often that evaluates a candidate, and how far.
struct Contender {
  std::string name;        ///< its label, else its key; unique
  std::int64_t seeds = 1;  ///< number of searches
  Experiment experiment;
  bool believes_best_answer = false;  ///< of a candidate, see Trust

  /// For the record: its key, its fitted settings, its evaluations of a candidate, `fidelity` where
  /// it has one, and `belief` where it is the best answer.
  [[nodiscard]] ComparedAlgorithm record() const;
};

/// Many searches of several algorithms on one table.
struct Comparison {
  std::vector<Contender> contenders;  ///< at least one
  /// Tables, redrawn from the recorded one, that answer its searches in turn; 0: the recorded one does. See Draw.
  std::int64_t draws = 0;

  /// An experiment of which all but the algorithm holds for every contender. Its seed is that of
  /// the first search; the next ones follow.
  [[nodiscard]] const Experiment& common() const { return contenders.front().experiment; }
  /// What all contenders have in common, as a configuration with nothing left to a default.
  [[nodiscard]] nlohmann::json resolved() const;
};

/// Settings at the top of a comparison beside those of an experiment.
std::vector<Setting> comparison_settings();
/// Settings of an item of `algorithms` beside its algorithm's.
std::vector<Setting> contender_settings();
/// Settings of the section `evaluation` that an item of `algorithms` may have for itself.
const std::vector<std::string>& contender_evaluation();

/// Reads a comparison: an experiment with the problem `tabular`, in which `algorithms` (a list of names, or maps with what a
/// section `algorithm` may have and label, seeds, belief, evaluation, fidelity) stands in place of `algorithm`, and `seeds`
/// says how many searches each of them runs. A search may ask 50 times as often as it may train, unless budget.asks says
/// otherwise: one that asks for nothing new would never end.
/// @throws InputError as load_experiment does.
Comparison load_comparison(const std::filesystem::path& file,
                           const std::vector<std::string>& overrides);

/// Keeps the contenders of these names. @throws InputError if there is none of a name.
void keep_contenders(Comparison& comparison, const std::vector<std::string>& names);

}  // namespace nas
