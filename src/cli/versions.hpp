#pragma once

#include <string>

namespace nas {

/// Program, compiler and library versions, one line each.
std::string version_text();

}  // namespace nas
