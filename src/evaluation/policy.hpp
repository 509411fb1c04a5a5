#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/visibility.hpp"
#include "store/evaluation.hpp"

namespace NAS_PUBLIC nas {

/// What happens when a candidate is asked for again.
enum class Repeated {
  reuse,      ///< the first replicates answer always
  retrain,    ///< each ask evaluates further replicates, which answer alone (the published GA)
  replicate,  ///< the same, and all replicates so far answer
};

/// @throws InputError unless "reuse", "retrain" or "replicate".
Repeated parse_repeated(std::string_view text);

/// How often a training run that ended with such a status is tried again, from its beginning, before
/// that is recorded. What diverged or was rejected would come to the same.
struct Retries {
  std::int64_t failed = 0;
  std::int64_t out_of_memory = 0;
  std::int64_t timed_out = 0;

  [[nodiscard]] std::int64_t of(Status status) const;
};

/// Replicates of a candidate, numbered from 0, at one ask: [first, end) answer, of which [known, end) are evaluated for it.
struct Replicates {
  std::int64_t first = 0;
  std::int64_t known = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t num_fresh() const { return end - known; }
};

/// @param each   evaluations of a candidate for one ask, at least 1.
/// @param known  replicates that earlier asks have evaluated: fewer than `each` under `reuse` where
///               it was paused (search by rungs).
Replicates answering_replicates(Repeated repeated, std::int64_t each, std::int64_t known);

/// Arrays that tasks are divided into, evenly: as few as `width` allows, but a multiple of the
/// workers where there are tasks enough, so that no worker idles beside a wide array.
/// @param workers  at least 1.
/// @param width    most tasks of an array, at least 1.
std::size_t num_arrays(std::size_t tasks, std::size_t workers, std::size_t width);

/// Arrays of tasks that are alike: of each group its share, rounded, of num_arrays(), but no fewer
/// than it needs; ascending by their first tasks.
/// @param groups  places of tasks, each once, at least one in a group.
std::vector<std::vector<std::size_t>> arrays_of(const std::vector<std::vector<std::size_t>>& groups,
                                                std::size_t workers, std::size_t width);

/// Where a search must end, whatever its algorithm would do; 0 = no such limit.
struct Budget {
  std::int64_t asks = 0;  ///< the last batch is cut
  /// Caused by asks; the last batch is cut. Candidates that a constraint rejects before training are free.
  std::int64_t evaluations = 0;
  double train_seconds = 0.0;  ///< of training, summed; no further training begins
  /// Of training, summed; the last batch is cut, so that what is trained depends on no machine.
  std::int64_t train_steps = 0;
  /// Asks that constraints reject before training, counted from the last ask that trained something: where hardly anything
  /// satisfies them, a search that trains too little to use up its budget still ends.
  std::int64_t rejections = 5000;

  /// @return the limit that so many asks, evaluations and steps exceed, "93 evaluations"; empty:
  /// none.
  [[nodiscard]] std::string exceeded_by(std::int64_t asks_after, std::int64_t evaluations_after,
                                        std::int64_t steps_after = 0) const;
  /// @return what ends a search of which so many asks were rejected since the last training: "5000
  /// candidates in a row rejected by constraints"; empty if nothing does.
  [[nodiscard]] std::string rejected_too_often(std::int64_t rejections_in_a_row) const;
  /// @return the time that is used up, "2 h 05 min of training"; empty if it is not.
  [[nodiscard]] std::string used_up_by(double seconds) const;
};

}  // namespace nas
