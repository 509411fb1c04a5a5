#include <algorithm>

#include "convert/block.hpp"
#include "core/setting_forms.hpp"

namespace nas {
namespace {

LayerBlock window(const Parameters& sizes) {
  return {.layer = [width = sizes.get<std::int64_t>("width"),
                    first = sizes.get<std::int64_t>("first")](Mechanism layer) {
    const bool has_window = layer.word("pattern") == "window";
    layer.set("window", has_window ? std::min(layer.integer("window"), width) : width);
    layer.set("globals", first);
    layer.set("pattern", "window");
    return layer;
  }};
}

NAS_REGISTER_BLOCK({.key = "window",
                    .summary = "sees the newest tokens and the first ones alone: without these an "
                               "untrained window fails (Xiao et al. 2024, arXiv:2309.17453)",
                    .settings = {setting::integer("width", 64, 1, 1e9,
                                                  "newest tokens, its own included"),
                                 setting::integer("first", 4, 0, 1e9, "first tokens")},
                    .file = __FILE__},
                   window);

}  // namespace
}  // namespace nas
