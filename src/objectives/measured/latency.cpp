#include "instruments/latency.hpp"

#include "core/setting_forms.hpp"
#include "search/objective.hpp"

namespace nas {
namespace {

Objective latency(const Parameters& settings) {
  nn::LatencySettings measurement;
  const auto part = settings.get<std::string>("part");
  measurement.pass.part = nn::parse_part(part);
  measurement.pass.batch = settings.get<std::int64_t>("batch");
  measurement.pass.context = settings.get<std::int64_t>("context");
  measurement.repeats = settings.get<std::int64_t>("repeats");
  const auto percentile = settings.get<std::string>("percentile");
  return {.unit = "ms", .measured = [measurement, part, percentile](const Subject& subject) {
            auto here = measurement;
            here.pass.device = subject.device;
            here.pass.numerical_mode = subject.numerical_mode;
            here.threads = subject.threads;
            const auto report = nn::measure_latency(subject.architecture,
                                                    nn::vanilla_canary(subject.architecture), here);
            auto record = nn::record_of(report, here, percentile);
            record["context"] = report.context;
            record["part"] = part;
            return record;
          }};
}

NAS_REGISTER_OBJECTIVE(
    {.key = "latency",
     .summary = "time of a forward pass of the untrained model, no dropout, no gradients, measured "
                "in turns with vanilla attention of the same sizes; it depends on the machine: a "
                "run replays from its records, but is not reproducible",
     .settings = {setting::choice("part", "attention", {"attention", "model"},
                                  "what is timed: one attention layer alone, or the model"),
                  nn::percentile_setting(),
                  setting::integer("batch", 1, 1, 65536, "sequences per pass"), context_setting(),
                  nn::repeats_setting()},
     .file = __FILE__},
    latency);

}  // namespace
}  // namespace nas
