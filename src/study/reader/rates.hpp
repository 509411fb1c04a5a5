#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "config/document.hpp"

namespace nas {

/// Learning rates that a configuration gives: "NAME RATE" each, where a name is `baseline`, a control's, or a
/// mechanism's.
/// @param list  of such texts.
/// @param mechanism  the canonical name of one that is given; nothing where it is a mistake, which is reported.
/// @return by these names, mechanisms by their canonical ones.
std::map<std::string, double> read_rates(
    const DocumentNode& list,
    const std::function<std::optional<std::string>(const std::string&, const Origin&)>& mechanism,
    Diagnostics& diagnostics);

}  // namespace nas
