#pragma once

#include "core/visibility.hpp"

namespace NAS_PUBLIC nas {

/// The programs, from the arguments of main to the exit code. They lie in the libraries, as they stand on
/// what these hide, and a plug-in finds the registries that they use. Without LibTorch there are those
/// of nas_add_program(NAME LIBRARY attnas_base) alone.
int nas_compare(int argc, char** argv);
int nas_export(int argc, char** argv);
int nas_model(int argc, char** argv);
int nas_run(int argc, char** argv);
int nas_train(int argc, char** argv);
int nas_work(int argc, char** argv);

}  // namespace nas
