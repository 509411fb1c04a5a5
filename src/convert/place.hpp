#pragma once

#include <filesystem>
#include <string>

namespace nas {

/// Writes the model that a placement makes of another as a folder of its own, which PyTorch and transformers open.
///
/// @param placement  "full 8,17-20; window{64,4} 0-7,9-16": the blocks of all layers.   @param folder  is not there yet.
/// @param trained  folder of what all its blocks have learned (stage_one.hpp); empty: they are as they begin.
/// @throws InputError where base is no folder of a model, the placement none of its layers, or a block has not learned.
void write_placed(const std::filesystem::path& base, const std::string& placement,
                  const std::filesystem::path& folder, const std::filesystem::path& trained = {});

}  // namespace nas
