#pragma once

#include <string>

namespace nas {

/// Program, compiler and library versions, a line each.
std::string version_text();

}  // namespace nas
