// The normalization "plugged_norm".

#include "genotype/component.hpp"

namespace {

[[maybe_unused]] const bool kAdded =
    nas::components().add({.gene = "normalization", .key = "plugged_norm", .summary = NAS_SUMMARY});

}  // namespace
