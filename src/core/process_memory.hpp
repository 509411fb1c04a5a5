#pragma once

#include <cstdint>

namespace nas {

/// Memory that this process has, programs and libraries included, in bytes; 0 where the system does not say.
std::int64_t resident_memory();
/// The most that it had so far.
std::int64_t peak_resident_memory();
/// Its address space, what it has not written included.
std::int64_t mapped_memory();

}  // namespace nas
