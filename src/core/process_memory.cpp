#include "core/process_memory.hpp"

#include <fstream>
#include <string>

namespace nas {

namespace {

std::int64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kib = 0;
    if (word == name && status >> kib) return 1024 * kib;
  }
  return 0;
}

}  // namespace

std::int64_t resident_memory() { return status_bytes("VmRSS:"); }
std::int64_t peak_resident_memory() { return status_bytes("VmHWM:"); }
std::int64_t mapped_memory() { return status_bytes("VmSize:"); }

}  // namespace nas
