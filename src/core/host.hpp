#pragma once

#include <string>

namespace nas {

/// Name of this machine in its network, for records and messages.
std::string host_name();

}  // namespace nas
