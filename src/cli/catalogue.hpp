#pragma once

#include <nlohmann/json.hpp>

namespace nas {

/// What registries hold of plug-ins, without what these do: keys, summaries, settings, and what a
/// component says of itself. Made from a process with LibTorch when attnas is built.
nlohmann::json catalogue();

/// Registers what of a catalogue this process lacks. To do what a plug-in does, or to ask for its
/// costs under other sizes than those of AttentionShape{}, throws BeyondWords.
void register_catalogue(const nlohmann::json& catalogue);

}  // namespace nas
