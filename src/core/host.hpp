#pragma once

#include <string>

namespace nas {

/// Name of this machine in its network, for records and messages.
std::string host_name();

/// The most memory that this process could have, in bytes: the machine's with its swap space, less
/// where a control group or the address space (ulimit -v) is limited.
/// @param resident, mapped  bytes of memory and of the address space that are to be left out.
double largest_memory(double resident = 0.0, double mapped = 0.0);

/// Refuses what cannot fit before anything of it is made.
/// @param what   what needs the memory, with the settings that it follows from.
/// @param bytes  the least that it needs.
/// @throws InputError "WHAT: at least 3.4 TiB of memory, must be at most 15.6 GiB (all that there
/// is)" if bytes > largest_memory().
void require_memory(const std::string& what, double bytes);

/// The present time, UTC, for records: "2026-01-31T12:00:00Z".
std::string utc_now();

}  // namespace nas
