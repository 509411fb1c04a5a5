#include "instruments/energy.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include <dlfcn.h>

#include "core/error.hpp"

namespace nas::nn {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// ---- RAPL: one folder per domain. intel-rapl:0 is a package, or the platform ("psys"), which
// contains the packages; intel-rapl:0:1 is a part of a package.

std::optional<std::uint64_t> read_number(const fs::path& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

bool is_package(const fs::path& domain) {
  const auto folder = domain.filename().string();
  if (folder.rfind("intel-rapl:", 0) != 0 || std::count(folder.begin(), folder.end(), ':') != 1) {
    return false;
  }
  std::string name;
  std::ifstream(domain / "name") >> name;
  return name.rfind("package", 0) == 0;
}

class RaplPackage {
 public:
  /// @return nothing if the domain's counter cannot be read.
  static std::optional<RaplPackage> open(const fs::path& domain) {
    const auto now = read_number(domain / "energy_uj");
    const auto range = read_number(domain / "max_energy_range_uj");
    if (!now || !range) return std::nullopt;
    return RaplPackage(domain / "energy_uj", *now, *range);
  }

  double joules() {
    const auto now = read_number(file_);
    if (!now) throw MachineError(file_.string() + ": cannot be read");
    // From its maximum the counter goes on at 0.
    microjoules_ += *now >= last_ ? *now - last_ : range_ - last_ + *now;
    last_ = *now;
    return static_cast<double>(microjoules_) * 1e-6;
  }

 private:
  RaplPackage(fs::path file, std::uint64_t now, std::uint64_t range)
      : file_(std::move(file)), last_(now), range_(range) {}

  fs::path file_;
  std::uint64_t last_;
  std::uint64_t range_;
  std::uint64_t microjoules_ = 0;
};

class Rapl final : public EnergyMeter {
 public:
  /// @throws InputError unless every package can be read, and there is one.
  explicit Rapl(const std::string& root) {
    std::error_code none;
    int found = 0;
    for (const auto& entry : fs::directory_iterator(root, none)) {
      if (!is_package(entry.path())) continue;
      ++found;
      if (auto package = RaplPackage::open(entry.path())) packages_.push_back(std::move(*package));
    }
    if (found == 0) {
      throw InputError("no RAPL counter of a package in " + root +
                       " (virtual machines and containers often have none)");
    }
    if (packages_.size() < static_cast<std::size_t>(found)) {
      throw InputError("no readable RAPL counter in " + root +
                       " (they are for root only on many kernels)");
    }
  }

  double joules() override {
    double sum = 0.0;
    for (auto& package : packages_) sum += package.joules();
    return sum;
  }
  std::string source() const override {
    return "RAPL, " + std::to_string(packages_.size()) +
           (packages_.size() == 1 ? " package" : " packages");
  }

 private:
  std::vector<RaplPackage> packages_;
};

// ---- NVML, without its header and without linking it.

class NvmlLibrary {
 public:
  /// @throws InputError saying what is missing.
  explicit NvmlLibrary(const std::string& name)
      : library_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL), dlclose) {
    if (!library_) throw InputError("NVML (" + name + ") is not there");
    shutdown_ = function<int()>("nvmlShutdown");
    auto* const init = function<int()>("nvmlInit_v2");
    if (const int error = init(); error != 0) {
      throw InputError("NVML does not start, error " + std::to_string(error));
    }
  }
  ~NvmlLibrary() { shutdown_(); }
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  template <class Signature>
  Signature* function(const char* name) const {
    void* address = dlsym(library_.get(), name);
    if (address == nullptr) throw InputError("NVML has no " + std::string(name) + ": too old");
    return reinterpret_cast<Signature*>(address);
  }

 private:
  std::unique_ptr<void, int (*)(void*)> library_;
  int (*shutdown_)() = nullptr;
};

class Nvml final : public EnergyMeter {
 public:
  /// @throws InputError saying what is missing.
  Nvml(const std::string& library, unsigned index)
      : library_(library),
        energy_(library_.function<int(void*, unsigned long long*)>(
            "nvmlDeviceGetTotalEnergyConsumption")),
        index_(index) {
    auto* const handle = library_.function<int(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2");
    if (const int error = handle(index, &device_); error != 0) {
      throw InputError("NVML does not know device " + std::to_string(index) + ", error " +
                       std::to_string(error));
    }
    if (const int error = energy_(device_, &start_); error != 0) {
      throw InputError("NVML has no counter of the energy of device " + std::to_string(index) +
                       ", error " + std::to_string(error));
    }
  }

  double joules() override {
    unsigned long long now = 0;  // mJ
    if (const int error = energy_(device_, &now); error != 0) {
      throw MachineError("NVML does not tell the energy of device " + std::to_string(index_) +
                         ", error " + std::to_string(error));
    }
    return static_cast<double>(now - start_) * 1e-3;
  }
  std::string source() const override { return "NVML, device " + std::to_string(index_); }

 private:
  NvmlLibrary library_;
  int (*energy_)(void*, unsigned long long*);
  unsigned index_;
  void* device_ = nullptr;
  unsigned long long start_ = 0;
};

}  // namespace

std::unique_ptr<EnergyMeter> make_energy_meter(const std::string& device,
                                               const EnergySources& sources) {
  if (device == "cpu") return std::make_unique<Rapl>(sources.powercap);
  constexpr std::string_view kCuda = "cuda";
  unsigned index = 0;
  bool known = device == kCuda;
  if (device.rfind("cuda:", 0) == 0) {
    const char* end = device.data() + device.size();
    const auto parsed = std::from_chars(device.data() + kCuda.size() + 1, end, index);
    known = parsed.ec == std::errc() && parsed.ptr == end;
  }
  if (!known) throw InputError("device = " + device + ", must be cpu, cuda or cuda:N");
  return std::make_unique<Nvml>(sources.nvml, index);
}

std::string energy_unavailable(const std::string& device, const EnergySources& sources) {
  try {
    (void)make_energy_meter(device, sources);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

EnergyReport measure_energy(const std::function<void()>& work, double seconds, double idle_seconds,
                            EnergyMeter& meter) {
  constexpr double kDay = 86400;
  require_in_range("seconds", seconds, 1e-3, kDay);
  require_in_range("idle_seconds", idle_seconds, 0, kDay);
  EnergyReport report;
  report.source = meter.source();
  if (idle_seconds > 0) {
    const double before = meter.joules();
    const auto start = Clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(idle_seconds));
    report.idle_watts = (meter.joules() - before) / seconds_since(start);
  }
  const double before = meter.joules();
  const auto start = Clock::now();
  do {
    work();
    ++report.passes;
    report.seconds = seconds_since(start);
  } while (report.seconds < seconds);
  const double beyond_idle = meter.joules() - before - report.idle_watts * report.seconds;
  report.below_idle = beyond_idle < 0;
  report.joules = report.below_idle ? 0 : beyond_idle / static_cast<double>(report.passes);
  return report;
}

EnergyReport measure_energy(const Architecture& architecture, const EnergySettings& settings,
                            EnergyMeter& meter) {
  const ThreadScope threads(settings.threads);
  ForwardPass pass(architecture, settings.pass);
  constexpr int kWarmUp = 3;
  for (int i = 0; i < kWarmUp; ++i) pass();
  return measure_energy([&pass] { pass(); }, settings.seconds, settings.idle_seconds, meter);
}

}  // namespace nas::nn
