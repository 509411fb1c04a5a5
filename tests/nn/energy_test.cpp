#include "instruments/energy.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/temporary_folder.hpp"
#include "core/visibility.hpp"
#include "search/objective.hpp"

namespace {

/// What the stand-in for NVML, below, answers: error codes, and the counter of device 1.
struct FakeNvml {
  int init_error = 0;
  int energy_error = 0;
  unsigned long long millijoules = 0;
  int open = 0;
};
FakeNvml fake_nvml;

}  // namespace

namespace NAS_PUBLIC in_program {
extern "C" {
int nvmlInit_v2();
int nvmlShutdown();
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device);
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules);

int nvmlInit_v2() {
  if (fake_nvml.init_error == 0) ++fake_nvml.open;
  return fake_nvml.init_error;
}
int nvmlShutdown() {
  --fake_nvml.open;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &fake_nvml;
  return index == 1 ? 0 : 2;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  *millijoules = static_cast<FakeNvml*>(device)->millijoules;
  return fake_nvml.energy_error;
}
}
}  // namespace in_program

namespace nas::nn {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const EnergySources kInProgram{.nvml = ""};  // dlopen("") is the program itself

/// A folder like /sys/class/powercap.
class Powercap : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) const {
    temporary_.write(file, text + '\n');
  }
  void add_domain(const std::string& folder, const std::string& name, std::uint64_t energy) const {
    write(folder + "/name", name);
    write(folder + "/energy_uj", std::to_string(energy));
    write(folder + "/max_energy_range_uj", "5000000");
  }
  void set_energy(const std::string& folder, std::uint64_t energy) const {
    write(folder + "/energy_uj", std::to_string(energy));
  }

  const TemporaryFolder temporary_;
  EnergySources sources_{.powercap = temporary_.path().string()};
};

TEST_F(Powercap, SumsThePackages) {
  add_domain("intel-rapl:0", "package-0", 1000000);
  add_domain("intel-rapl:0:0", "core", 0);
  add_domain("intel-rapl:1", "package-1", 2000000);
  add_domain("intel-rapl:2", "psys", 0);
  add_domain("intel-rapl-mmio:0", "package-0", 0);
  write("intel-rapl/enabled", "1");
  const auto meter = make_energy_meter("cpu", sources_);
  EXPECT_EQ(energy_unavailable("cpu", sources_), "");
  EXPECT_EQ(meter->source(), "RAPL, 2 packages");
  EXPECT_DOUBLE_EQ(meter->joules(), 0.0);
  set_energy("intel-rapl:0", 1500000);
  EXPECT_DOUBLE_EQ(meter->joules(), 0.5);
  set_energy("intel-rapl:1", 2000001);
  EXPECT_DOUBLE_EQ(meter->joules(), 0.500001);
  // None of the others is, or is below, a package of its own.
  for (const auto* other : {"intel-rapl:0:0", "intel-rapl:2", "intel-rapl-mmio:0"}) {
    set_energy(other, 4000000);
  }
  EXPECT_DOUBLE_EQ(meter->joules(), 0.500001);
}

TEST_F(Powercap, FollowsACounterThatStartsAgain) {
  add_domain("intel-rapl:0", "package-0", 4900000);
  const auto meter = make_energy_meter("cpu", sources_);
  EXPECT_EQ(meter->source(), "RAPL, 1 package");
  set_energy("intel-rapl:0", 200000);
  EXPECT_DOUBLE_EQ(meter->joules(), 0.3);
  EXPECT_DOUBLE_EQ(meter->joules(), 0.3);
  set_energy("intel-rapl:0", 300000);
  EXPECT_DOUBLE_EQ(meter->joules(), 0.4);
  set_energy("intel-rapl:0", 0);
  EXPECT_DOUBLE_EQ(meter->joules(), 5.1);
}

TEST_F(Powercap, SaysThatThereIsNoCounter) {
  const auto nothing = "no RAPL counter of a package in " + sources_.powercap +
                       " (virtual machines and containers often have none)";
  EXPECT_EQ(energy_unavailable("cpu", sources_), nothing);
  add_domain("intel-rapl:0", "psys", 0);
  EXPECT_EQ(energy_unavailable("cpu", sources_), nothing);
  EXPECT_THROW((void)make_energy_meter("cpu", sources_), InputError);
  const EnergySources elsewhere{.powercap = sources_.powercap + "/none"};
  EXPECT_THAT(energy_unavailable("cpu", elsewhere), HasSubstr("no RAPL counter of a package in"));
}

TEST_F(Powercap, SaysThatACounterIsNotReadable) {
  const auto unreadable = "no readable RAPL counter in " + sources_.powercap +
                          " (they are for root only on many kernels)";
  add_domain("intel-rapl:0", "package-0", 0);
  // Root reads a file of any mode; a folder nobody reads as a file.
  fs::remove(fs::path(sources_.powercap) / "intel-rapl:0/energy_uj");
  fs::create_directory(fs::path(sources_.powercap) / "intel-rapl:0/energy_uj");
  EXPECT_EQ(energy_unavailable("cpu", sources_), unreadable);
  add_domain("intel-rapl:1", "package-1", 0);  // one package of two is half the truth
  EXPECT_EQ(energy_unavailable("cpu", sources_), unreadable);
}

TEST_F(Powercap, FailsWhenACounterGoesAway) {
  add_domain("intel-rapl:0", "package-0", 0);
  const auto meter = make_energy_meter("cpu", sources_);
  fs::remove_all(fs::path(sources_.powercap) / "intel-rapl:0");
  EXPECT_THROW((void)meter->joules(), std::runtime_error);
}

TEST(Nvml, CountsTheEnergyOfOneDevice) {
  fake_nvml = {.millijoules = 5000};
  {
    const auto meter = make_energy_meter("cuda:1", kInProgram);
    EXPECT_EQ(fake_nvml.open, 1);
    EXPECT_EQ(meter->source(), "NVML, device 1");
    EXPECT_DOUBLE_EQ(meter->joules(), 0.0);
    fake_nvml.millijoules = 7500;
    EXPECT_DOUBLE_EQ(meter->joules(), 2.5);
    fake_nvml.energy_error = 999;
    EXPECT_THROW((void)meter->joules(), std::runtime_error);
  }
  EXPECT_EQ(fake_nvml.open, 0);
}

TEST(Nvml, SaysWhatIsMissing) {
  fake_nvml = {};
  EXPECT_EQ(energy_unavailable("cuda:0", {.nvml = "libattnas-none.so.1"}),
            "NVML (libattnas-none.so.1) is not there");
  EXPECT_EQ(energy_unavailable("cuda", {.nvml = "libz.so.1"}), "NVML has no nvmlShutdown: too old");
  EXPECT_EQ(energy_unavailable("cuda:1", kInProgram), "");
  EXPECT_EQ(energy_unavailable("cuda", kInProgram), "NVML does not know device 0, error 2");
  fake_nvml.energy_error = 3;
  EXPECT_EQ(energy_unavailable("cuda:1", kInProgram),
            "NVML has no counter of the energy of device 1, error 3");
  EXPECT_EQ(fake_nvml.open, 0);
  fake_nvml.init_error = 9;
  EXPECT_EQ(energy_unavailable("cuda:1", kInProgram), "NVML does not start, error 9");
  EXPECT_EQ(fake_nvml.open, 0);
}

TEST(EnergyMeter, IsOfAKnownDevice) {
  for (const std::string device : {"tpu", "cuda:", "cuda:x", "cuda:1x", "cudax", ""}) {
    EXPECT_EQ(energy_unavailable(device), "device = " + device + ", must be cpu, cuda or cuda:N");
  }
}

/// Counts what the work adds, and a given amount at idle: between the first two readings. No time
/// goes into it, so that the load of the machine decides nothing.
class FakeMeter final : public EnergyMeter {
 public:
  double joules() override {
    if (++readings == 2) total += at_idle;
    return total;
  }
  std::string source() const override { return "fake"; }

  double total = 0.0;
  double at_idle = 0.0;
  int readings = 0;
};

TEST(Energy, IsThatOfOnePass) {
  FakeMeter meter;
  std::int64_t calls = 0;
  const auto work = [&] {
    ++calls;
    meter.total += 0.25;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const auto report = measure_energy(work, 0.05, 0.01, meter);
  EXPECT_GT(calls, 1);
  EXPECT_EQ(report.passes, calls);
  EXPECT_DOUBLE_EQ(report.joules, 0.25);
  EXPECT_GE(report.seconds, 0.05);
  EXPECT_EQ(report.idle_watts, 0.0);
  EXPECT_FALSE(report.below_idle);
  EXPECT_EQ(report.source, "fake");
}

TEST(Energy, IsBeyondIdling) {
  FakeMeter meter;
  meter.at_idle = 1e-3;
  const auto report = measure_energy([&] { meter.total += 100.0; }, 0.001, 0.001, meter);
  EXPECT_GT(report.idle_watts, 0.0);
  EXPECT_LE(report.idle_watts, 1.0);
  const auto passes = static_cast<double>(report.passes);
  const double expected = 100.0 * passes - report.idle_watts * report.seconds;
  EXPECT_NEAR(report.joules, expected / passes, 1e-9 * expected);
  EXPECT_FALSE(report.below_idle);
}

TEST(Energy, IsNeverNegative) {
  FakeMeter meter;
  meter.at_idle = 1.0;
  const auto report = measure_energy([] {}, 0.001, 0.001, meter);
  EXPECT_TRUE(report.below_idle);
  EXPECT_EQ(report.joules, 0.0);
  const auto without_idle = measure_energy([] {}, 0.001, 0, meter);
  EXPECT_FALSE(without_idle.below_idle);
  EXPECT_EQ(without_idle.idle_watts, 0.0);
}

TEST(Energy, RefusesDurationsOutOfRange) {
  FakeMeter meter;
  EXPECT_THROW((void)measure_energy([] {}, 0, 0, meter), InputError);
  EXPECT_THROW((void)measure_energy([] {}, 1, -1, meter), InputError);
}

Architecture small_model() {
  return {.stack = {vanilla_mechanism(Semantics::corrected)},
          .layers = 1,
          .width = 16,
          .heads = 2,
          .context = 8,
          .vocabulary = 20};
}

TEST(Energy, IsMeasuredOfAModel) {
  FakeMeter meter;
  meter.at_idle = 1.0;  // of the second reading, after the passes: idling is not measured
  EnergySettings settings;
  settings.seconds = 0.02;
  settings.idle_seconds = 0;
  const auto report = measure_energy(small_model(), settings, meter);
  EXPECT_GT(report.passes, 1);
  EXPECT_DOUBLE_EQ(report.joules * static_cast<double>(report.passes), 1.0);
}

TEST(EnergyObjective, IsMeasuredOrSaysWhyNot) {
  const auto& entry = objectives().at("energy");
  Parameters settings(entry.description.settings);
  settings.set("seconds", 0.1);
  settings.set("idle_seconds", 0.1);
  const auto objective = entry.make(settings);
  EXPECT_EQ(objective.unit, "J");
  EXPECT_FALSE(objective.maximise);
  EXPECT_FALSE(objective.analytic || objective.trained);
  EXPECT_EQ(objective.unavailable({{"device", "cuda:0"}}), energy_unavailable("cuda:0"));
  const auto why = objective.unavailable({{"device", "cpu"}});
  EXPECT_EQ(why, energy_unavailable("cpu"));
  const Subject subject{.architecture = small_model()};
  if (!why.empty()) {
    EXPECT_THROW((void)objective.measured(subject), InputError);
    GTEST_SKIP() << why;
  }
  const auto measured = objective.measured(subject);
  EXPECT_GE(measured.at("value").get<double>(), 0.0);
  EXPECT_GT(measured.at("passes").get<std::int64_t>(), 0);
  EXPECT_GE(measured.at("seconds").get<double>(), 0.1);
  EXPECT_GE(measured.at("idle_watts").get<double>(), 0.0);
  EXPECT_THAT(measured.at("source").get<std::string>(), HasSubstr("RAPL"));
}

}  // namespace
}  // namespace nas::nn
