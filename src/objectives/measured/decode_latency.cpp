#include "instruments/latency.hpp"
#include "search/objective.hpp"

namespace nas {
namespace {

Objective decode_latency(const Parameters& settings) {
  nn::LatencySettings measurement;
  measurement.pass.part = nn::Part::step;
  measurement.pass.context = settings.get<std::int64_t>("tokens");
  measurement.repeats = settings.get<std::int64_t>("repeats");
  const bool median = settings.get<std::string>("percentile") == "p50";
  return {.unit = "ms", .measured = [measurement, median](const Subject& subject) {
            auto here = measurement;
            here.pass.device = subject.device;
            here.pass.numerical_mode = NumericalMode::reference;
            here.threads = subject.threads;
            auto canary = subject.architecture;
            canary.genes = {};
            canary.stack = {vanilla_mechanism(canary.semantics)};
            const auto report = nn::measure_latency(subject.architecture, canary, here);
            return nlohmann::json{
                {"value", median ? report.p50 : report.p90},
                {"p50", report.p50},
                {"p90", report.p90},
                {"canary_p50", report.canary_p50},
                {"canary_p90", report.canary_p90},
                {"relative", report.relative()},
                {"repeats", report.repeats},
                {"numerical_mode", to_string(here.pass.numerical_mode)},
                {"threads", subject.threads},
                {"device", subject.device},
                {"clock", report.clock},
                {"batch", here.pass.batch},
                {"tokens", report.context},
                {"state_bytes", state_bytes(subject.architecture, report.context)}};
          }};
}

NAS_REGISTER_OBJECTIVE(
    {.key = "decode_latency",
     .summary =
         "time of one token of the untrained model from the state of those before, with which "
         "there are as many tokens as stated, one sequence, no gradients, measured in turns "
         "with vanilla attention of the same sizes; it depends on the machine: a run replays "
         "from its records, but is not reproducible",
     .settings = {{.name = "tokens",
                   .default_value = std::int64_t{0},
                   .help =
                       "tokens of the sequence, the timed one included; 0 = the model's context",
                   .min = 0,
                   .max = 1e6},
                  {.name = "percentile",
                   .default_value = std::string("p50"),
                   .help = "percentile of the timed calls, by nearest rank",
                   .choices = {"p50", "p90"}},
                  {.name = "repeats",
                   .default_value = std::int64_t{60},
                   .help = "timed calls",
                   .min = nn::LatencySettings::kMinRepeats,
                   .max = 1e6}},
     .file = __FILE__},
    decode_latency);

}  // namespace
}  // namespace nas
