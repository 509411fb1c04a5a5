#include "instruments/latency.hpp"

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
  const bool median = settings.get<std::string>("percentile") == "p50";
  return {.unit = "ms", .measured = [measurement, part, median](const Subject& subject) {
            auto here = measurement;
            here.pass.device = subject.device;
            here.pass.numerical_mode = subject.numerical_mode;
            here.threads = subject.threads;
            auto canary = subject.architecture;
            canary.genes = {};
            canary.stack = {vanilla_mechanism(canary.semantics)};
            const auto report = nn::measure_latency(subject.architecture, canary, here);
            return nlohmann::json{{"value", median ? report.p50 : report.p90},
                                  {"p50", report.p50},
                                  {"p90", report.p90},
                                  {"canary_p50", report.canary_p50},
                                  {"canary_p90", report.canary_p90},
                                  {"relative", report.relative()},
                                  {"repeats", report.repeats},
                                  {"numerical_mode", to_string(subject.numerical_mode)},
                                  {"threads", subject.threads},
                                  {"device", subject.device},
                                  {"clock", report.clock},
                                  {"batch", here.pass.batch},
                                  {"context", report.context},
                                  {"part", part}};
          }};
}

NAS_REGISTER_OBJECTIVE(
    {.key = "latency",
     .summary = "time of a forward pass of the untrained model, no dropout, no gradients, measured "
                "in turns with vanilla attention of the same sizes; it depends on the machine: a "
                "run replays from its records, but is not reproducible",
     .settings = {{.name = "part",
                   .default_value = std::string("attention"),
                   .help = "what is timed: one attention layer alone, or the model",
                   .choices = {"attention", "model"}},
                  {.name = "percentile",
                   .default_value = std::string("p50"),
                   .help = "percentile of the timed calls, by nearest rank",
                   .choices = {"p50", "p90"}},
                  {.name = "batch",
                   .default_value = std::int64_t{1},
                   .help = "sequences per pass",
                   .min = 1,
                   .max = 65536},
                  context_setting(),
                  {.name = "repeats",
                   .default_value = std::int64_t{60},
                   .help = "timed calls",
                   .min = nn::LatencySettings::kMinRepeats,
                   .max = 1e6}},
     .file = __FILE__},
    latency);

}  // namespace
}  // namespace nas
