#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

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

/// A table that might have been recorded in place of a table: its replicates redrawn within each
/// mechanism. A function of seed and number alone.
struct Draw {
  std::uint64_t seed = 0;
  std::int64_t number = 0;
};

/// Replicates of a mechanism that take part in draws, ascending: all that it has, but not those that
/// all mechanisms have (num_replicates()) where there are more others, since by them was chosen who
/// got further ones.
std::vector<std::int64_t> redrawn_replicates(const Table& table, std::int64_t mechanism);

/// The same, permuted by a draw: the first num_replicates() answer searches on it, and no search
/// sees the others.
std::vector<std::int64_t> redrawn_replicates(const Table& table, std::int64_t mechanism,
                                             const Draw& draw);

/// Which recorded replicate answers the n-th evaluation of a mechanism in one search. Depends on
/// the search's seed, its draw, and on nothing that the search does, so that searches of equal seed
/// see equal noise. Refers to the table.
class Replay {
 public:
  /// @param draw  in place of the recorded table.
  Replay(const Table& table, ReplayMode mode, std::uint64_t search_seed,
         std::optional<Draw> draw = {});

  /// The n-th entry of a permutation of all replicates that answer: drawn for each (search seed, mechanism)
  /// where noisy, for the search seed alone where paired (common random numbers). Without
  /// replacement: the pool is finite, and n beyond it starts again at its beginning. The cell may
  /// be missing. From kFirstHeldOutReplicate on, what no search asks for: the replicate of the number
  /// n - kFirstHeldOutReplicate itself.
  /// @param n  0, 1, ...
  /// @throws std::logic_error where the mode is `mean`: there is no one replicate.
  [[nodiscard]] std::int64_t replicate(std::int64_t mechanism, std::int64_t n) const;

 private:
  const Table* table_;
  ReplayMode mode_;
  std::uint64_t seed_;
  std::optional<Draw> draw_;
};

}  // namespace nas
