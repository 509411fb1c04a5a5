#pragma once

#include <cstdint>
#include <filesystem>

namespace nas {

/// What a run writes, roughly.
struct DiskNeed {
  std::int64_t parameters = 0;   ///< of a model
  std::int64_t at_once = 1;      ///< models that are trained at the same time
  std::int64_t kept_models = 0;  ///< whose weights are saved
  std::int64_t evaluations = 0;  ///< that are recorded

  /// A checkpoint, the weights and two moments of each in float32, beside the one that it replaces,
  /// and the beginning of the store. Bytes.
  [[nodiscard]] std::int64_t to_begin() const;
  /// The whole run. Bytes.
  [[nodiscard]] std::int64_t in_all() const;
};

/// Compares what is free with what is needed, before anything is trained: warns where the run will
/// probably not fit.
/// @param available  bytes that are free in the run's folder.
/// @throws MachineError "no space left in FOLDER: ..." if not even one checkpoint fits.
void check_free_space(const std::filesystem::path& folder, std::uintmax_t available,
                      const DiskNeed& need);

}  // namespace nas
