#include "instruments/energy.hpp"

#include "search/objective.hpp"

namespace nas {
namespace {

Objective energy(const Parameters& settings) {
  nn::EnergySettings measurement;
  measurement.pass.batch = settings.get<std::int64_t>("batch");
  measurement.pass.context = settings.get<std::int64_t>("context");
  measurement.seconds = settings.get<double>("seconds");
  measurement.idle_seconds = settings.get<double>("idle_seconds");
  return {.unit = "J",
          .measured =
              [measurement](const Subject& subject) {
                auto here = measurement;
                here.pass.device = subject.device;
                here.pass.numerical_mode = subject.numerical_mode;
                here.threads = subject.threads;
                const auto meter = nn::make_energy_meter(subject.device);
                const auto report = nn::measure_energy(subject.architecture, here, *meter);
                return nlohmann::json{
                    {"value", report.joules},          {"passes", report.passes},
                    {"seconds", report.seconds},       {"idle_watts", report.idle_watts},
                    {"below_idle", report.below_idle}, {"source", report.source}};
              },
          .unavailable =
              [](const nlohmann::json& facts) {
                return nn::energy_unavailable(facts.value("device", "cpu"));
              }};
}

NAS_REGISTER_OBJECTIVE(
    {.key = "energy",
     .summary =
         "energy of a forward pass of the untrained model beyond idling, from the counters of the "
         "CPU's packages (RAPL) or of the GPU (NVML); passes are repeated, since A100 and H100 "
         "sample a quarter of the time only (Yang et al. 2023, arXiv:2312.02741); it depends on "
         "the machine: a run replays from its records, but is not reproducible",
     .settings = {{.name = "batch",
                   .default_value = std::int64_t{1},
                   .help = "sequences per pass",
                   .min = 1,
                   .max = 65536},
                  context_setting(),
                  {.name = "seconds",
                   .default_value = 3.0,
                   .help = "shortest total duration of the repeated passes, s",
                   .min = 0.1,
                   .max = 60},
                  {.name = "idle_seconds",
                   .default_value = 1.0,
                   .help = "duration of the measurement of idle power before them, s; 0 = none",
                   .min = 0,
                   .max = 60}},
     .file = __FILE__},
    energy);

}  // namespace
}  // namespace nas
