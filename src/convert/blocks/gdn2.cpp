#include "convert/recurrent.hpp"

namespace nas {
namespace {

NAS_REGISTER_BLOCK(
    {.key = "gdn2",
     .summary =
         "the same with gates of what is erased and written (Gated DeltaNet-2, arXiv:2605.22791)",
     .settings = {block_taps(), block_gate()},
     .file = __FILE__},
    [](const Parameters& sizes) {
      return recurrent_block(
          {{"update", "delta2"}, {"decay", "channel"}, {"decay_form", "softplus"}}, sizes);
    });

}  // namespace
}  // namespace nas
