#pragma once

#include <string>

namespace nas {

/// The folder of the sources that are tested, and that of the programs built from them. Functions,
/// not definitions on each command line, so that what is compiled is the same in every folder.
std::string source_folder();
std::string program_folder();

}  // namespace nas
