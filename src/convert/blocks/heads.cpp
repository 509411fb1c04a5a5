#include "convert/block.hpp"
#include "core/setting_forms.hpp"

namespace nas {
namespace {

/// A layer with a window stays as it is: it has one.
LayerBlock heads(const Parameters& sizes) {
  return {.layer = [sizes](Mechanism layer) {
    if (layer.word("pattern") != "full") return layer;
    layer.set("pattern", "window");
    layer.set("full_groups", sizes.get<std::int64_t>("groups"));
    layer.set("window", sizes.get<std::int64_t>("width"));
    layer.set("globals", sizes.get<std::int64_t>("first"));
    return layer;
  }};
}

NAS_REGISTER_BLOCK(
    {.key = "heads",
     .summary = "some heads of keys and values stay whole, the others see the newest tokens and "
                "the first ones (DuoAttention, Xiao et al. 2024, arXiv:2410.10819)",
     .settings = {setting::integer("groups", 1, 1, 0x1p53 - 1,
                                   "bits of those that stay whole: 1 the first, 2 the second, 3 "
                                   "both"),
                  setting::integer("width", 64, 1, 1e9, "newest tokens, its own included"),
                  setting::integer("first", 4, 0, 1e9, "first tokens")},
     .file = __FILE__},
    heads);

}  // namespace
}  // namespace nas
