#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/experiment.hpp"
#include "search/problem.hpp"

namespace nas {

/// What a search will ask for, found by running its real algorithm on made-up fitness values.
struct Rehearsal {
  std::int64_t asked = 0;    ///< asks; exact for algorithms whose number of asks is fixed
  std::int64_t trained = 0;  ///< of them not answered by an earlier evaluation; an estimate
  std::int64_t batches = 0;  ///< batches of asks: generations, for generational algorithms
  std::vector<std::string> candidates;  ///< canonical names, in order of the first ask
};

/// Cost: milliseconds. Nothing is trained and nothing is kept.
Rehearsal rehearse(const Experiment& experiment, const std::shared_ptr<Problem>& problem);

/// The algorithm's seed, from the experiment's.
std::uint32_t search_seed(const Experiment& experiment);

/// The initial population that an experiment asks for: a share of known-good genotypes, by name.
std::vector<Genotype> informed_genotypes(const Experiment& experiment);

}  // namespace nas
