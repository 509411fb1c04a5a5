// A mixer and a pattern with sizes of their own, right in sized.so; the others say what cannot be.

#include <string>

#include "genotype/component.hpp"
#include "genotype/mixer_kind.hpp"

namespace {

const std::string kName = NAS_SUMMARY;

nas::MixerKind kind() {
  const std::int64_t taps = kName == "otherwise" ? 5 : kName == "outside" ? 9 : 4;
  return {.key = kName,
          .genes = {{kName == "misspelt" ? "tabs" : "smear", {}}},
          .sizes = {{.name = "taps",
                     .default_value = taps,
                     .help = "inputs that are averaged",
                     .min = 2,
                     .max = 8}}};
}

nas::Component option() {
  return {.gene = kName == "unused" ? "norm" : "pattern",
          .key = kName + "_option",
          .summary = kName,
          .voids = {kName == "voiding" ? "colour" : "smear"},
          .sizes = {{.name = kName + "_step", .default_value = 1, .help = "keys apart", .min = 1}}};
}

[[maybe_unused]] const bool kAdded =
    nas::mixer_kinds().add(kind()) && nas::components().add(option());

}  // namespace
