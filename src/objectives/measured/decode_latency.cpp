#include "core/setting_forms.hpp"
#include "genotype/costs.hpp"
#include "instruments/latency.hpp"
#include "search/objective.hpp"

namespace nas {
namespace {

Objective decode_latency(const Parameters& settings) {
  nn::LatencySettings measurement;
  measurement.pass.part = nn::Part::step;
  measurement.pass.context = settings.get<std::int64_t>("tokens");
  measurement.repeats = settings.get<std::int64_t>("repeats");
  const auto percentile = settings.get<std::string>("percentile");
  return {.unit = "ms", .measured = [measurement, percentile](const Subject& subject) {
            auto here = measurement;
            here.pass.device = subject.device;
            here.pass.numerical_mode = NumericalMode::reference;
            here.threads = subject.threads;
            const auto report = nn::measure_latency(subject.architecture,
                                                    nn::vanilla_canary(subject.architecture), here);
            auto record = nn::record_of(report, here, percentile);
            record["tokens"] = report.context;
            record["state_bytes"] = state_bytes(subject.architecture, report.context);
            return record;
          }};
}

NAS_REGISTER_OBJECTIVE(
    {.key = "decode_latency",
     .summary =
         "time of one token of the untrained model from the state of those before, with which "
         "there are as many tokens as stated, one sequence, no gradients, measured in turns "
         "with vanilla attention of the same sizes; it depends on the machine: a run replays "
         "from its records, but is not reproducible",
     .settings = {setting::integer(
                      "tokens", 0, 0, 1e6,
                      "tokens of the sequence, the timed one included; 0 = the model's context"),
                  nn::percentile_setting(), nn::repeats_setting()},
     .file = __FILE__},
    decode_latency);

}  // namespace
}  // namespace nas
