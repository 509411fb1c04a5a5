#pragma once

#include <string>
#include <vector>

namespace nas {

/// One of the runs of a command with lists of values.
struct MultirunPart {
  std::string folder;                  ///< "algorithm.name=nsga2,seed=1"; empty: nothing varies
  std::vector<std::string> overrides;  ///< of this run, one value each
};

/// The runs that overrides with lists mean: "seed=1..5" stands for the whole numbers from 1 to 5,
/// "algorithm.name=evo_ga,nsga2" for each of the two; what is in brackets, braces or quotation marks
/// is one value. Every value goes with every other one, the last setting first.
/// @throws InputError for a range that is empty or has more than 10,000 numbers, more than 10,000
/// runs, a value or a setting that comes twice, an empty value, and a value that is no name of a
/// folder.
std::vector<MultirunPart> multirun(const std::vector<std::string>& overrides);

/// Whether runs differ in seeds, algorithms and budgets alone, which analysis/compare.py compares; others
/// are shown side by side by analysis/sweep.py.
bool compares_algorithms(const std::vector<MultirunPart>& parts);

}  // namespace nas
