#include "convert/recurrent.hpp"

namespace nas {
namespace {

NAS_REGISTER_BLOCK({.key = "gdn",
                    .summary = "a state that decays and erases what it replaces (Gated DeltaNet, "
                               "Yang et al. 2024, arXiv:2412.06464)",
                    .settings = {block_taps(), block_gate()},
                    .file = __FILE__},
                   [](const Parameters& sizes) {
                     return recurrent_block({{"update", "delta"}, {"decay", "scalar"}}, sizes);
                   });

}  // namespace
}  // namespace nas
