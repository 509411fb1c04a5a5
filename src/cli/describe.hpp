#pragma once

#include <string>

namespace nas {

/// What there is: plug-ins and components with a sentence each.
///
/// @param kind  algorithms, problems, objectives, components, data, or empty: all.
/// @throws InputError for another kind.
std::string list_text(const std::string& kind);

/// Everything that bears the name: plug-ins with their settings, components with formula, cost and
/// labels, sections of the configuration. @throws InputError naming the nearest if nothing does.
std::string describe_text(const std::string& name);

}  // namespace nas
