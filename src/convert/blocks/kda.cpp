#include "convert/recurrent.hpp"
#include "core/setting_forms.hpp"

namespace nas {
namespace {

NAS_REGISTER_BLOCK(
    {.key = "kda",
     .summary = "a state that erases, each channel of which decays (Kimi Delta Attention, "
                "arXiv:2510.26692)",
     .settings = {setting::integer("conv", 4, 0, 8, "taps of short convolutions; 0: none"),
                  setting::integer("gate", 1, 0, 1, "1: gates its outputs")},
     .file = __FILE__},
    [](const Parameters& sizes) {
      return recurrent_block(
          {{"update", "delta"}, {"decay", "channel"}, {"decay_form", "softplus"}}, sizes);
    });

}  // namespace
}  // namespace nas
