#include "convert/recurrent.hpp"
#include "core/setting_forms.hpp"

namespace nas {
namespace {

NAS_REGISTER_BLOCK({.key = "gdn",
                    .summary = "a state that decays and erases what it replaces (Gated DeltaNet, "
                               "Yang et al. 2024, arXiv:2412.06464)",
                    .settings = {setting::integer("conv", 4, 0, 8,
                                                  "taps of short convolutions; 0: none"),
                                 setting::integer("gate", 1, 0, 1, "1: gates its outputs")},
                    .file = __FILE__},
                   [](const Parameters& sizes) {
                     return recurrent_block({{"update", "delta"}, {"decay", "scalar"}}, sizes);
                   });

}  // namespace
}  // namespace nas
