#include "convert/block.hpp"

namespace nas {
namespace {

NAS_REGISTER_BLOCK({.key = "share",
                    .summary = "reads the keys and values of the nearest earlier layer that keeps "
                               "some, and sees none that it does not keep (YOCO, Sun et al. 2024, "
                               "arXiv:2405.05254); untrained it loses much",
                    .file = __FILE__},
                   [](const Parameters& /*sizes*/) {
                     return LayerBlock{.layer = [](Mechanism layer) {
                       layer.set("keys", "shared");
                       return layer;
                     }};
                   });

}  // namespace
}  // namespace nas
