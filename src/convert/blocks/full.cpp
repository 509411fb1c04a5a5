#include "convert/block.hpp"

namespace nas {
namespace {

NAS_REGISTER_BLOCK({.key = "full", .summary = "the layer as it is", .file = __FILE__},
                   [](const Parameters& /*sizes*/) {
                     return LayerBlock{.layer = [](Mechanism layer) { return layer; }};
                   });

}  // namespace
}  // namespace nas
