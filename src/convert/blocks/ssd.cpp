#include "convert/recurrent.hpp"

namespace nas {
namespace {

NAS_REGISTER_BLOCK(
    {.key = "ssd",
     .summary =
         "a state that decays as each token says (Mamba-2, Dao and Gu 2024, arXiv:2405.21060)",
     .settings = {block_gate()},
     .file = __FILE__},
    [](const Parameters& sizes) {
      return recurrent_block({{"decay", "scalar"}}, sizes);
    });

}  // namespace
}  // namespace nas
