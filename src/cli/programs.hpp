#pragma once

#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// The programs that need no LibTorch, from the arguments of main to the exit code; nas_program() of
/// cli/start.hpp runs any. They lie in the library, as they stand on what it hides, and a plug-in finds
/// the registries that they use.
int nas_data(int argc, char** argv);
int nas_export(int argc, char** argv);

}  // namespace nas
