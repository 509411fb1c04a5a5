#include "convert/block.hpp"
#include "core/error.hpp"
#include "core/setting_forms.hpp"

namespace nas {
namespace {

LayerBlock gqa(const Parameters& sizes) {
  const auto groups = sizes.get<std::int64_t>("groups");
  return {.layer =
              [groups](Mechanism layer) {
                layer.set("kv_heads", groups);
                return layer;
              },
          .weight =
              [groups](const BlockParameter& of) {
                const auto own = of.own(of.name);
                const auto& shape = of.shape;
                if (!of.name.starts_with("attention.k_proj") &&
                    !of.name.starts_with("attention.v_proj"))
                  return own;
                if (shape.key_heads() % groups != 0) {
                  throw InputError("block gqa{" + std::to_string(groups) +
                                   "}: groups must divide " + std::to_string(shape.key_heads()) +
                                   ", the layer's heads of keys and values");
                }
                const auto inner = own.dim() > 1 ? own.size(1) : 1;
                return own.reshape({groups, shape.key_heads() / groups, shape.head_width(), inner})
                    .mean(1)
                    .flatten(0, 1)
                    .reshape(own.dim() > 1 ? std::vector<std::int64_t>{-1, inner}
                                           : std::vector<std::int64_t>{-1});
              }};
}

NAS_REGISTER_BLOCK({.key = "gqa",
                    .summary = "fewer heads of keys and values, each the mean of those that it "
                               "replaces (Ainslie et al. 2023, arXiv:2305.13245)",
                    .settings = {setting::integer("groups", 1, 1, 1e6, "heads of keys and values")},
                    .file = __FILE__},
                   gqa);

}  // namespace
}  // namespace nas
