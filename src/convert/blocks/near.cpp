#include "convert/recurrent.hpp"
#include "core/setting_forms.hpp"

namespace nas {
namespace {

NAS_REGISTER_BLOCK(
    {.key = "near",
     .summary = "softmax over the last tokens and linear attention to those before, in one sum "
                "(Zhang et al. 2024, LoLCATs, arXiv:2410.10254)",
     .settings = {setting::choice("feature", "hedgehog", {"hedgehog", "taylor2"},
                                  "of queries and keys"),
                  setting::integer("near", 64, 1, 1e9, "last tokens, which softmax sees")},
     .file = __FILE__},
    [](const Parameters& sizes) {
      return recurrent_block({{"feature", sizes.get<std::string>("feature")},
                              {"near", sizes.get<std::int64_t>("near")}});
    });

}  // namespace
}  // namespace nas
