#pragma once

#include <cstdint>

#include <pagmo/algorithm.hpp>

#include "core/parameters.hpp"
#include "core/registry.hpp"

namespace nas {

/// Search algorithms by key: settings and seed in, pagmo algorithm out. The run's number of
/// generations is one of the algorithm's settings, so that one evolve() call is one run.
using AlgorithmRegistry = Registry<pagmo::algorithm(const Parameters&, std::uint32_t seed)>;
AlgorithmRegistry& algorithms();

/// Registers an algorithm from its own .cpp in algorithms/: `NAS_REGISTER_ALGORITHM(description,
/// function);`
#define NAS_REGISTER_ALGORITHM(...) \
  [[maybe_unused]] static const bool nas_registered_algorithm = ::nas::algorithms().add(__VA_ARGS__)

}  // namespace nas
