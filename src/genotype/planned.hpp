#pragma once

#include <string_view>

#include "genotype/component.hpp"

namespace nas {

/// The description of a registered option. @param mixer  of the layer.
/// @throws InputError saying that no module computes it if there is none.
const Component& described(std::string_view gene, std::string_view key,
                           std::string_view mixer = {});

}  // namespace nas
