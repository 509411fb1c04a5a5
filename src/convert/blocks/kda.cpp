#include "convert/recurrent.hpp"

namespace nas {
namespace {

NAS_REGISTER_BLOCK(
    {.key = "kda",
     .summary = "a state that erases, each channel of which decays (Kimi Delta Attention, "
                "arXiv:2510.26692)",
     .settings = {block_taps(), block_gate()},
     .file = __FILE__},
    [](const Parameters& sizes) {
      return recurrent_block(
          {{"update", "delta"}, {"decay", "channel"}, {"decay_form", "softplus"}}, sizes);
    });

}  // namespace
}  // namespace nas
