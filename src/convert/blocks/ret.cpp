#include "convert/recurrent.hpp"

namespace nas {
namespace {

NAS_REGISTER_BLOCK({.key = "ret",
                    .summary = "a state that decays at a fixed rate in each head (RetNet, Sun et "
                               "al. 2023, arXiv:2307.08621)",
                    .settings = {block_gate()},
                    .file = __FILE__},
                   [](const Parameters& sizes) {
                     return recurrent_block({{"decay", "fixed"}}, sizes);
                   });

}  // namespace
}  // namespace nas
