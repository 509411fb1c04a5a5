#include "convert/block.hpp"

namespace nas {
namespace {

NAS_REGISTER_BLOCK({.key = "drop",
                    .summary = "nothing in the place of attention: a control",
                    .file = __FILE__},
                   [](const Parameters& /*sizes*/) {
                     return LayerBlock{.layer = [](const Mechanism& layer) {
                       Mechanism bare;
                       bare.set("mixer", "none");
                       bare.set("ffn", layer.word("ffn"));
                       bare.set("ratio", layer.integer("ratio"));
                       return bare;
                     }};
                   });

}  // namespace
}  // namespace nas
