#pragma once

#include <vector>

#include "genotype/search_space.hpp"
#include "report/summary.hpp"

namespace nas {

/// The genes of a run's search space, as far as the run recorded them: those of an attention
/// mechanism with the options and bounds of its configuration, else "x1", "x2", ... A bound or an
/// option that the configuration does not give is taken from the values that were asked for.
/// @return none where the genotypes of a run have no common number of genes.
std::vector<Gene> recorded_genes(const RunSummary& run);

}  // namespace nas
