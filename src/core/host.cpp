#include "core/host.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <fstream>

#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/format.hpp"

namespace nas {

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

double largest_memory(double resident, double mapped) {
  struct sysinfo system {};
  sysinfo(&system);
  double largest = (static_cast<double>(system.totalram) + static_cast<double>(system.totalswap)) *
                   static_cast<double>(system.mem_unit);
  // "max", where there is no limit, is no number.
  double group = 0.0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> group) largest = std::min(largest, group);
  largest -= resident;
  rlimit address_space{};
  if (getrlimit(RLIMIT_AS, &address_space) == 0 && address_space.rlim_cur != RLIM_INFINITY) {
    largest = std::min(largest, static_cast<double>(address_space.rlim_cur) - mapped);
  }
  return largest;
}

void require_memory(const std::string& what, double bytes) {
  const double largest = largest_memory();
  if (bytes <= largest) return;
  static constexpr double kMost = 9e18;  // of the type that is written out
  const auto text = [](double number) {
    return human_bytes(static_cast<std::int64_t>(std::min(number, kMost)));
  };
  throw InputError(what + ": at least " + text(bytes) + " of memory, must be at most " +
                   text(largest) + " (all that there is)");
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

}  // namespace nas
