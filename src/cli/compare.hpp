#pragma once

#include <filesystem>

#include "cli/comparison.hpp"

namespace nas {

struct CompareOptions {
  std::filesystem::path folder;  ///< of the comparison; created
  int threads = 1;               ///< searches at once
  bool quiet = false;            ///< no progress, only the result
};

/// Runs all searches of a comparison that the folder's comparison.sqlite does not hold yet, each as
/// nas-run would with its seed on the problem `tabular`, and prints what the algorithms came to.
/// What is stored does not depend on the number of threads, but for the seconds that a search took.
///
/// @throws InputError if the folder holds a comparison on another table, of other objectives, of
/// another budget, or with other settings of an algorithm of the same name; nothing is written
/// then.
/// @throws StopRequested when asked to stop; every finished search is stored.
void run_comparison(const Comparison& comparison, const CompareOptions& options);

}  // namespace nas
