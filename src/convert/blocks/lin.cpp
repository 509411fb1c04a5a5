#include "convert/recurrent.hpp"
#include "core/setting_forms.hpp"

namespace nas {
namespace {

NAS_REGISTER_BLOCK(
    {.key = "lin",
     .summary =
         "linear attention by features of queries and keys (Zhang et al. 2024, arXiv:2402.04347)",
     .settings = {setting::choice("feature", "hedgehog", {"hedgehog", "taylor2"},
                                  "of queries and keys")},
     .file = __FILE__},
    [](const Parameters& sizes) {
      return recurrent_block({{"feature", sizes.get<std::string>("feature")}});
    });

}  // namespace
}  // namespace nas
