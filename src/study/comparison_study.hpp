#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/visibility.hpp"
#include "study/reader/comparison.hpp"

namespace NAS_PUBLIC nas {

/// The outcome of one algorithm of a comparison: medians over its searches, see Truth.
struct AlgorithmOutcome {
  std::string name;
  std::int64_t searches = 0;
  double returned = 0.0;                 ///< true regret, or the share of the true hypervolume
  std::pair<double, double> interval{};  ///< median_interval of that
  double everything = 0.0;               ///< the same of everything evaluated
  double asks_per_training = 0.0;
  double asks_per_second = 0.0;  ///< of a search's own processor time
};

/// The outcome of a comparison.
struct ComparisonResult {
  std::vector<AlgorithmOutcome> algorithms{};  ///< those that have searched
  bool several = false;                        ///< objectives
  std::string objective{};                     ///< the first one
  double best = 0.0;  ///< true value of the best candidate in its own sense; several objectives:
                      ///< hypervolume of all candidates
  std::vector<std::string> judged_on_validation{};  ///< objectives of which the table has no test
  std::int64_t recycled = 0;    ///< evaluations beyond the table's replicates, see num_recycled()
  std::int64_t replicates = 0;  ///< of the table
};

struct ComparisonSettings {
  std::filesystem::path folder{};  ///< of the comparison; created
  int threads = 1;                 ///< searches at once
  /// Hears how many of the missing searches are done, and whose was the last.
  std::function<void(std::size_t done, std::size_t missing, const std::string& algorithm)>
      on_progress{};
};

/// Runs all searches of a comparison that the folder's comparison.sqlite does not hold yet, each as
/// nas-run would with its seed on the problem `tabular`. What is stored does not depend on the
/// number of threads, but for the seconds that a search took. Warns where searches are there that
/// another revision of the program has made.
///
/// @throws InputError if the folder holds a comparison on another table, of other objectives, of
/// another budget, or with other settings of an algorithm of the same name, or one that is damaged;
/// nothing is written then.
/// @throws StopRequested when asked to stop; every finished search is stored.
ComparisonResult run_comparison(const Comparison& comparison, const ComparisonSettings& settings);

}  // namespace nas
