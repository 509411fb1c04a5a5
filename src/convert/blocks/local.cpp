#include "convert/block.hpp"

namespace nas {
namespace {

/// Of one key the weight is 1: W_o R W_v a, R repeats the values of shared heads.
NAS_REGISTER_BLOCK(
    {.key = "local",
     .summary = "each token sees itself alone, which is a matrix and keeps nothing: a "
                "control (called linear attention in Puzzle, arXiv:2411.19146)",
     .file = __FILE__},
    [](const Parameters& /*sizes*/) {
      return LayerBlock{.layer =
                            [](Mechanism layer) {
                              layer.set("pattern", "window");
                              layer.set("window", 1);
                              layer.set("globals", 0);
                              return layer;
                            },
                        .keeps_nothing = true};
    });

}  // namespace
}  // namespace nas
