#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "genotype/architecture.hpp"
#include "instruments/forward_pass.hpp"

namespace nas::nn {

/// Where energy is read.
struct EnergySources {
  std::string powercap = "/sys/class/powercap";  ///< folder of the RAPL counters of a CPU
  std::string nvml = "libnvidia-ml.so.1";        ///< library of the counters of a CUDA device
};

/// A counter of the energy of a device: everything on it counts, not this process alone.
class EnergyMeter {
 public:
  virtual ~EnergyMeter() = default;
  /// @return joules since the meter was made. @throws std::runtime_error if it cannot be read.
  virtual double joules() = 0;
  /// @return what is read: "RAPL, 2 packages", "NVML, device 0".
  [[nodiscard]] virtual std::string source() const = 0;
};

/// The meter of a device. "cpu": RAPL, the sum of the packages (with what is below them: cores,
/// caches; memory and the platform's own domain are not in it). A package's counter may start again
/// from 0 once between two readings, which takes minutes at full load. "cuda", "cuda:N": NVML,
/// whose number N is in PCI order, as CUDA's is with CUDA_DEVICE_ORDER=PCI_BUS_ID and all devices
/// visible.
///
/// @throws InputError saying why there is none.
std::unique_ptr<EnergyMeter> make_energy_meter(const std::string& device,
                                               const EnergySources& sources = {});
/// @return why make_energy_meter would throw, or an empty text.
std::string energy_unavailable(const std::string& device, const EnergySources& sources = {});

struct EnergySettings {
  PassSettings pass{.part = Part::model};
  int threads = 1;
  double seconds = 3.0;  ///< least duration of the repeated passes, [0.001, 86400]
  double idle_seconds =
      1.0;  ///< duration of the measurement of idle power before, [0, 86400]; 0 = none
};

/// What a forward pass needs beyond idling.
struct EnergyReport {
  double joules = 0.0;  ///< of one pass, >= 0
  std::int64_t passes = 0;
  double seconds = 0.0;     ///< that all passes took
  double idle_watts = 0.0;  ///< 0 if not measured
  bool below_idle = false;  ///< the passes used less than idling would have; joules is 0
  std::string source;
};

/// Energy of one call of `work`: power at idle first, then `work` again and again for `seconds`;
/// what the meter counts less the power at idle times the duration, divided by the calls. Long
/// enough, since the sensor of an A100 or H100 samples a quarter of the time only, and counters
/// move in steps of 1 to 100 ms.
/// @see Yang, Adamek and Armour (2023), arXiv:2312.02741.
///
/// @throws InputError for durations out of the ranges of EnergySettings.
EnergyReport measure_energy(const std::function<void()>& work, double seconds, double idle_seconds,
                            EnergyMeter& meter);
/// The same of a forward pass, after some calls to warm up. Cost: seconds + idle_seconds; nothing
/// else should run meanwhile.
EnergyReport measure_energy(const Architecture& architecture, const EnergySettings& settings,
                            EnergyMeter& meter);

}  // namespace nas::nn
