#pragma once

#include <string>
#include <vector>

namespace nas {

/// What there is, one line each: key and summary.
///
/// @param kind  algorithms, problems, objectives, components, data, sections, configurations (those
/// that are installed), or empty: all of them.
/// @throws InputError naming the kinds for another kind.
std::string list_text(const std::string& kind);

/// Everything that bears the name: plug-ins with their settings; components, by key or by the
/// paper's label, with formula, cost and labels; sections of a configuration with their settings; words of the field
/// (field_words.hpp); settings that bear it or begin with it, with their section or plug-in.
///
/// @throws InputError naming the nearest name if nothing bears it.
std::string describe_text(const std::string& name);

/// Names and paths of all settings, for what is mistyped: "steps", "training.steps".
std::vector<std::string> setting_names();

}  // namespace nas
