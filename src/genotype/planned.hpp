#pragma once

#include <string_view>

#include "genotype/component.hpp"

namespace nas {

/// The description of an option: that of the registered component, else, of an option that no module
/// computes yet, its costs by the formulas of its paper, so that its models can be planned.
/// @param mixer  of the layer.
/// @throws InputError saying that no module computes it if there is neither.
const Component& described(std::string_view gene, std::string_view key,
                           std::string_view mixer = {});

}  // namespace nas
