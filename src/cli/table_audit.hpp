#pragma once

#include <string>
#include <vector>

namespace nas {

/// `nas-data table audit ...`: the words after `audit`. @return the program's exit code.
int audit_command(std::vector<std::string> words);

}  // namespace nas
