#include "instruments/latency.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

#include "core/error.hpp"
#include "genotype/costs.hpp"
#include "genotype/slots.hpp"

#ifdef NAS_TORCH_CUDA
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#endif

namespace nas::nn {

namespace {

class SteadyStopwatch final : public Stopwatch {
 public:
  double time(ForwardPass& pass) override {
    pass.prepare();
    const auto start = std::chrono::steady_clock::now();
    pass();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    return elapsed.count();
  }
  [[nodiscard]] std::string clock() const override { return "steady clock"; }
};

#ifdef NAS_TORCH_CUDA
class CudaStopwatch final : public Stopwatch {
 public:
  explicit CudaStopwatch(c10::Device device)
      : device_(device.has_index() ? device.index() : c10::cuda::current_device()) {}

  double time(ForwardPass& pass) override {
    const c10::cuda::CUDAGuard guard(device_);
    pass.prepare();
    begin_.record();
    pass.enqueue();
    end_.record();
    end_.synchronize();
    return static_cast<double>(begin_.elapsed_time(end_));
  }
  [[nodiscard]] std::string clock() const override { return "CUDA events"; }

 private:
  c10::DeviceIndex device_;
  at::cuda::CUDAEvent begin_{cudaEventDefault};
  at::cuda::CUDAEvent end_{cudaEventDefault};
};
#endif

std::unique_ptr<Stopwatch> make_stopwatch([[maybe_unused]] const std::string& device) {
#ifdef NAS_TORCH_CUDA
  if (const c10::Device place(device); place.is_cuda()) {
    return std::make_unique<CudaStopwatch>(place);
  }
#endif
  return std::make_unique<SteadyStopwatch>();
}

}  // namespace

LatencyReport measure_latency(const Architecture& subject, const Architecture& canary,
                              const LatencySettings& settings,
                              std::unique_ptr<Stopwatch> stopwatch) {
  constexpr double kMostRepeats = std::numeric_limits<std::int32_t>::max();
  require_in_range("repeats", static_cast<double>(settings.repeats), LatencySettings::kMinRepeats,
                   kMostRepeats);
  require_in_range("warm_up", static_cast<double>(settings.warm_up), 0, kMostRepeats);
  const ThreadScope threads(settings.threads);
  ForwardPass subject_pass(subject, settings.pass);
  ForwardPass canary_pass(canary, settings.pass);
  if (!stopwatch) stopwatch = make_stopwatch(settings.pass.device);
  std::vector<double> subject_times;
  std::vector<double> canary_times;
  for (std::int64_t i = -settings.warm_up; i < settings.repeats; ++i) {
    double subject_time = 0.0;
    if (i % 2 == 0) subject_time = stopwatch->time(subject_pass);
    const double canary_time = stopwatch->time(canary_pass);
    if (i % 2 != 0) subject_time = stopwatch->time(subject_pass);
    if (i < 0) continue;
    subject_times.push_back(subject_time);
    canary_times.push_back(canary_time);
  }
  return {.p50 = percentile(subject_times, 50),
          .p90 = percentile(subject_times, 90),
          .canary_p50 = percentile(canary_times, 50),
          .canary_p90 = percentile(canary_times, 90),
          .repeats = settings.repeats,
          .context = subject_pass.context(),
          .clock = stopwatch->clock()};
}

Architecture vanilla_canary(Architecture subject) {
  subject.genes = {};
  subject.stack = {vanilla_mechanism(subject.semantics)};
  subject.hidden = 0;  // the subject's own, where its parameters are matched
  return fitted(std::move(subject));
}

nlohmann::json record_of(const LatencyReport& report, const LatencySettings& settings,
                         const std::string& percentile) {
  return {{"value", percentile == "p50" ? report.p50 : report.p90},
          {"p50", report.p50},
          {"p90", report.p90},
          {"canary_p50", report.canary_p50},
          {"canary_p90", report.canary_p90},
          {"relative", report.relative()},
          {"repeats", report.repeats},
          {"numerical_mode", to_string(settings.pass.numerical_mode)},
          {"threads", settings.threads},
          {"device", settings.pass.device},
          {"clock", report.clock},
          {"batch", settings.pass.batch}};
}

Setting percentile_setting() {
  return {.name = "percentile",
          .default_value = std::string("p50"),
          .help = "percentile of the timed calls, by nearest rank",
          .choices = {"p50", "p90"}};
}

Setting repeats_setting() {
  return {.name = "repeats",
          .default_value = LatencySettings{}.repeats,
          .help = "timed calls",
          .min = LatencySettings::kMinRepeats,
          .max = 1e6};
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
