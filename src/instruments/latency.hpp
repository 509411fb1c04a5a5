#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/parameters.hpp"
#include "genotype/architecture.hpp"
#include "instruments/forward_pass.hpp"

namespace nas::nn {

struct LatencySettings {
  /// Fewer timed calls say nothing about a p90.
  static constexpr std::int64_t kMinRepeats = 50;

  PassSettings pass{};
  int threads = 1;
  std::int64_t repeats = 60;  ///< timed calls of either, >= kMinRepeats
  std::int64_t warm_up = 5;   ///< calls of either before the first timed one
};

/// How long forward passes take, in milliseconds (see percentile).
struct LatencyReport {
  double p50 = 0.0;
  double p90 = 0.0;
  double canary_p50 = 0.0;
  double canary_p90 = 0.0;
  std::int64_t repeats = 0;  ///< timed calls of either
  std::int64_t context = 0;  ///< tokens of a sequence
  std::string clock;         ///< what timed them: "steady clock" or "CUDA events"

  /// p50 in units of the canary's: what is left of the machine's speed cancels.
  [[nodiscard]] double relative() const { return p50 / canary_p50; }
};

/// Times passes on one device.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  /// @return milliseconds of one pass, without what prepares it.
  virtual double time(ForwardPass& pass) = 0;
  [[nodiscard]] virtual std::string clock() const = 0;  ///< as in the report
};

/// Times forward passes: on a CUDA device by events on its stream before and after the pass, so
/// that waking up the waiting thread does not count, elsewhere by the steady clock until the device
/// is done. On a GPU, too, it is the time of operations launched one by one: where they are small,
/// that of launching them. Calls of the subject and of a canary, something known of the same sizes,
/// take turns and alternate in being first, so that a drift of the machine's speed meets both and
/// shows in the canary. Cost: twice (repeats + warm_up) calls; nothing else should run meanwhile.
///
/// @param stopwatch  in place of these clocks.
/// @throws InputError for settings out of their range or an architecture that is not valid.
LatencyReport measure_latency(const Architecture& subject, const Architecture& canary,
                              const LatencySettings& settings,
                              std::unique_ptr<Stopwatch> stopwatch = nullptr);

/// Vanilla attention in a model of the same sizes: the canary of objectives.
Architecture vanilla_canary(Architecture subject);

/// What a record has of a latency: "value", which is p50 or p90 as the setting `percentile` says,
/// and all of the report but its context, with what it was measured on.
nlohmann::json record_of(const LatencyReport& report, const LatencySettings& settings,
                         const std::string& percentile);

/// Settings of objectives.
Setting percentile_setting();
Setting repeats_setting();

/// The percentile by nearest rank: the smallest value that at least `percent` % of all values do
/// not exceed. It is one of the values; p50 of an even number of them is the lower middle one.
///
/// @param values  at least one, in any order.   @param percent  in [1, 100].
double percentile(std::vector<double> values, int percent);

}  // namespace nas::nn
