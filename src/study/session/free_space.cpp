#include "study/session/free_space.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/format.hpp"
#include "core/warning.hpp"

namespace nas {

namespace {

constexpr std::int64_t kMebi = std::int64_t{1} << 20U;
/// The store's row of an evaluation with its identity and curve, its ask, its lines in the result's
/// files, and their copies in the store's journal.
constexpr std::int64_t kBytesOfAnEvaluation = 32 * 1024;

}  // namespace

std::int64_t DiskNeed::to_begin() const {
  const auto checkpoint = 3 * static_cast<std::int64_t>(sizeof(float)) * parameters;
  return kMebi + 2 * checkpoint;
}

std::int64_t DiskNeed::in_all() const {
  const auto weights = static_cast<std::int64_t>(sizeof(float)) * parameters;
  return to_begin() + 3 * weights * at_once + weights * (kept_models > 0 ? kept_models + 1 : 0) +
         kBytesOfAnEvaluation * evaluations;
}

void check_free_space(const std::filesystem::path& folder, std::uintmax_t available,
                      const DiskNeed& need) {
  const auto free = static_cast<std::int64_t>(std::min<std::uintmax_t>(available, INT64_MAX));
  if (free < need.to_begin()) {
    throw MachineError("no space left in " + folder.string() + ": " + human_bytes(free) +
                       " are free, a training run needs " + human_bytes(need.to_begin()) +
                       " for its checkpoint");
  }
  if (free < need.in_all()) {
    warn(folder.string() + " has " + human_bytes(free) + " free, the run needs about " +
         human_bytes(need.in_all()));
  }
}

}  // namespace nas
