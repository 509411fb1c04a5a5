#include "nn/latency.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <stdexcept>

#include "core/error.hpp"

namespace nas::nn {

namespace {

double timed(ForwardPass& pass) {
  const auto start = std::chrono::steady_clock::now();
  pass();
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  return elapsed.count();
}

}  // namespace

LatencyReport measure_latency(const Architecture& subject, const Architecture& canary,
                              const LatencySettings& settings) {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  require_in_range("repeats", static_cast<double>(settings.repeats), LatencySettings::kMinRepeats,
                   kMost);
  require_in_range("warm_up", static_cast<double>(settings.warm_up), 0, kMost);
  const ThreadScope threads(settings.threads);
  ForwardPass subject_pass(subject, settings.pass);
  ForwardPass canary_pass(canary, settings.pass);
  std::vector<double> subject_times;
  std::vector<double> canary_times;
  for (std::int64_t i = -settings.warm_up; i < settings.repeats; ++i) {
    double subject_time = 0.0;
    if (i % 2 == 0) subject_time = timed(subject_pass);
    const double canary_time = timed(canary_pass);
    if (i % 2 != 0) subject_time = timed(subject_pass);
    if (i < 0) continue;
    subject_times.push_back(subject_time);
    canary_times.push_back(canary_time);
  }
  return {.p50 = percentile(subject_times, 50),
          .p90 = percentile(subject_times, 90),
          .canary_p50 = percentile(canary_times, 50),
          .canary_p90 = percentile(canary_times, 90),
          .repeats = settings.repeats,
          .context = subject_pass.context()};
}

double percentile(std::vector<double> values, int percent) {
  if (values.empty() || percent < 1 || percent > 100) {
    throw std::logic_error("no percentile " + std::to_string(percent) + " of " +
                           std::to_string(values.size()) + " values");
  }
  const auto rank = (static_cast<std::size_t>(percent) * values.size() + 99) / 100;
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

}  // namespace nas::nn
