// An objective of one's own: the energy of a forward pass.
//   nas-run config.yaml --plugin build/energy.so "objectives=[perplexity, energy]"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <attnas/core/error.hpp>
#include <attnas/instruments/forward_pass.hpp>
#include <attnas/search/objective.hpp>
#include <dlfcn.h>

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A counter of the energy of a device: everything on it counts, not this process alone.
class Meter {
 public:
  virtual ~Meter() = default;
  /// Since the meter was made.
  virtual double joules() = 0;
  [[nodiscard]] virtual std::string source() const = 0;
};

/// RAPL: the packages of a CPU, with cores and caches, without memory. A counter may start again from
/// 0 once between two readings, which takes minutes at full load.
class Rapl final : public Meter {
 public:
  Rapl() {
    const std::string root = "/sys/class/powercap";
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(root, none)) {
      const auto& domain = entry.path();  // intel-rapl:0:1 is a part of intel-rapl:0
      const auto folder = domain.filename().string();
      std::string name;
      std::ifstream(domain / "name") >> name;
      if (!folder.starts_with("intel-rapl:") || !name.starts_with("package")) continue;
      if (std::count(folder.begin(), folder.end(), ':') != 1) continue;
      packages_.push_back({domain / "energy_uj", number(domain / "energy_uj"),
                           number(domain / "max_energy_range_uj")});
    }
    if (packages_.empty()) {
      throw nas::InputError("no RAPL counter of a package in " + root +
                            " (virtual machines and containers often have none)");
    }
  }
  double joules() override {
    for (auto& [file, last, range] : packages_) {
      const auto now = number(file);
      microjoules_ += now >= last ? now - last : range - last + now;
      last = now;
    }
    return static_cast<double>(microjoules_) * 1e-6;
  }
  [[nodiscard]] std::string source() const override {
    return "RAPL, packages: " + std::to_string(packages_.size());
  }

 private:
  struct Package {
    fs::path file;
    std::uint64_t last, range;
  };
  static std::uint64_t number(const fs::path& file) {
    std::ifstream in(file);
    std::uint64_t value = 0;
    if (in >> value) return value;
    throw nas::InputError(file.string() + " cannot be read (many kernels keep it for root)");
  }
  std::vector<Package> packages_;
  std::uint64_t microjoules_ = 0;
};

/// NVML, without its header and without linking it. Its devices are in PCI order, as CUDA's are with
/// CUDA_DEVICE_ORDER=PCI_BUS_ID and all of them visible.
class Nvml final : public Meter {
 public:
  explicit Nvml(unsigned index)
      : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)), index_(index) {
    if (library_ == nullptr) throw nas::InputError("NVML (libnvidia-ml.so.1) is not there");
    energy_ = function<int(void*, unsigned long long*)>("nvmlDeviceGetTotalEnergyConsumption");
    auto* const handle = function<int(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2");
    if (function<int()>("nvmlInit_v2")() != 0 || handle(index, &device_) != 0) {
      throw nas::InputError("NVML does not know device " + std::to_string(index));
    }
    start_ = millijoules();
  }
  double joules() override { return static_cast<double>(millijoules() - start_) * 1e-3; }
  [[nodiscard]] std::string source() const override {
    return "NVML, device " + std::to_string(index_);
  }

 private:
  template <class Signature>
  Signature* function(const char* name) const {
    void* address = dlsym(library_, name);
    if (address == nullptr) throw nas::InputError("NVML has no " + std::string(name) + ": too old");
    return reinterpret_cast<Signature*>(address);
  }
  [[nodiscard]] unsigned long long millijoules() const {
    unsigned long long now = 0;
    if (energy_(device_, &now) == 0) return now;
    throw nas::InputError("NVML does not tell the energy of device " + std::to_string(index_));
  }
  void* library_;  // stays open
  int (*energy_)(void*, unsigned long long*) = nullptr;
  unsigned index_;
  void* device_ = nullptr;
  unsigned long long start_ = 0;
};

/// @param device  "cpu", "cuda" or "cuda:N".
std::unique_ptr<Meter> meter_of(const std::string& device) {
  if (device == "cpu") return std::make_unique<Rapl>();
  const auto colon = device.find(':');
  const auto index = colon == std::string::npos ? 0UL : std::stoul(device.substr(colon + 1));
  return std::make_unique<Nvml>(static_cast<unsigned>(index));
}

/// Joules of a pass beyond idling: power at idle first, then passes again and again, long enough,
/// since the sensor of an A100 or H100 samples a quarter of the time only (Yang et al. 2023,
/// arXiv:2312.02741).
nlohmann::json measured(const nas::Subject& subject, const nas::Parameters& settings) {
  const nas::nn::ThreadScope threads(subject.threads);
  nas::nn::ForwardPass pass(subject.architecture, {.part = nas::nn::Part::model,
                                                   .batch = settings.get<std::int64_t>("batch"),
                                                   .context = settings.get<std::int64_t>("context"),
                                                   .device = subject.device,
                                                   .numerical_mode = subject.numerical_mode});
  constexpr int kWarmUp = 3;
  for (int i = 0; i < kWarmUp; ++i) pass();
  const auto meter = meter_of(subject.device);
  auto begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(settings.get<double>("idle_seconds")));
  const double idle_joules = meter->joules();
  const double idle_watts = idle_joules / seconds_since(begin);
  begin = Clock::now();
  std::int64_t passes = 0;
  for (; passes == 0 || seconds_since(begin) < settings.get<double>("seconds"); ++passes) pass();
  const double seconds = seconds_since(begin);
  const double joules = meter->joules() - idle_joules - idle_watts * seconds;
  return {{"value", std::max(0.0, joules) / static_cast<double>(passes)},
          {"passes", passes},
          {"seconds", seconds},
          {"idle_watts", idle_watts},
          {"source", meter->source()}};
}

nas::Objective energy(const nas::Parameters& settings) {
  return {
      .unit = "J",
      .measured = [settings](const nas::Subject& subject) { return measured(subject, settings); },
      .unavailable = [](const nlohmann::json& facts) -> std::string {
        try {
          (void)meter_of(facts.value("device", "cpu"));
          return {};
        } catch (const std::exception& error) {
          return error.what();
        }
      }};
}

NAS_REGISTER_OBJECTIVE({.key = "energy",
                        .summary = "energy of a forward pass of the untrained model beyond idling, "
                                   "from the counters of the CPU (RAPL) or of the GPU (NVML)",
                        .settings = {{.name = "batch",
                                      .default_value = std::int64_t{1},
                                      .help = "sequences per pass",
                                      .min = 1,
                                      .max = 65536},
                                     nas::context_setting(),
                                     {.name = "seconds",
                                      .default_value = 3.0,
                                      .help = "shortest duration of the repeated passes, s",
                                      .min = 0.1,
                                      .max = 60},
                                     {.name = "idle_seconds",
                                      .default_value = 1.0,
                                      .help = "duration of the measurement of idle power, s",
                                      .min = 0.1,
                                      .max = 60}},
                        .file = __FILE__},
                       energy);

}  // namespace
