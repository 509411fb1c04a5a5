#pragma once

#include <cstdint>

#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// Numbers that belong to one option each, and have no effect beside any other.
struct Sizes {
  std::int64_t window = 64;    ///< newest keys that pattern window shows, the query's own included
  std::int64_t globals = 0;    ///< first keys that it shows besides
  std::int64_t stride = 16;    ///< of pattern strided
  std::int64_t block = 16;     ///< tokens of a block of patterns bigbird and lsh
  std::int64_t random = 1;     ///< random blocks of pattern bigbird
  std::int64_t buckets = 4;    ///< of pattern lsh
  std::int64_t rounds = 1;     ///< of pattern lsh
  double rope_base = 10000.0;  ///< of position rope
  double rope_fraction = 1.0;  ///< of a head's entries that position rope rotates
  std::int64_t t5_buckets = 32;
  std::int64_t t5_distance = 128;    ///< from which all keys are in the last bucket
  std::int64_t cope_positions = 64;  ///< of position cope
  std::int64_t decay_rank = 16;      ///< of decay channel
  double decay_tau = 16.0;           ///< divisor of its logarithms
  std::int64_t favor_features = 0;   ///< of feature favor; 0: twice the key width
  std::int64_t gate_rank = 0;        ///< of gating sigmoid_gate; 0: its matrix is full
  std::int64_t ratio = 0;  ///< of the feed-forward layer, its hidden width / D; 0: the model's

  friend bool operator==(const Sizes&, const Sizes&) = default;
};

}  // namespace nas
