#include "convert/recurrent.hpp"
#include "core/setting_forms.hpp"

namespace nas {
namespace {

NAS_REGISTER_BLOCK(
    {.key = "gdn2",
     .summary =
         "the same with gates of what is erased and written (Gated DeltaNet-2, arXiv:2605.22791)",
     .settings = {setting::integer("conv", 4, 0, 8, "taps of short convolutions; 0: none"),
                  setting::integer("gate", 1, 0, 1, "1: gates its outputs")},
     .file = __FILE__},
    [](const Parameters& sizes) {
      return recurrent_block(
          {{"update", "delta2"}, {"decay", "channel"}, {"decay_form", "softplus"}}, sizes);
    });

}  // namespace
}  // namespace nas
