#pragma once

#include <cstdint>
#include <string_view>

#include "table/table.hpp"

namespace nas {

/// What answers a search that trains nothing but looks into a table.
enum class ReplayMode {
  noisy,   ///< one recorded training run, drawn for each mechanism on its own
  mean,    ///< the mean of an objective's values over all replicates: no noise
  paired,  ///< one recorded training run, the same replicate for all mechanisms
};

/// @throws InputError unless "noisy", "mean" or "paired".
ReplayMode parse_replay_mode(std::string_view text);
std::string_view to_string(ReplayMode mode);

/// Which recorded replicate answers the n-th evaluation of a mechanism in one search. Depends on
/// the search's seed and on nothing that the search does, so that searches of equal seed see equal
/// noise. Refers to the table.
class Replay {
 public:
  Replay(const Table& table, ReplayMode mode, std::uint64_t search_seed);

  /// The n-th entry of a permutation of all replicates: drawn for each (search seed, mechanism)
  /// where noisy, for the search seed alone where paired (common random numbers). Without
  /// replacement: the pool is finite, and n beyond it starts again at its beginning. The cell may
  /// be missing.
  /// @param n  0, 1, ...
  /// @throws std::logic_error where the mode is `mean`: there is no one replicate.
  [[nodiscard]] std::int64_t replicate(std::int64_t mechanism, std::int64_t n) const;

 private:
  const Table* table_;
  ReplayMode mode_;
  std::uint64_t seed_;
};

}  // namespace nas
