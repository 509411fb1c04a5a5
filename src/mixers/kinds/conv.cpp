#include "genotype/costs.hpp"
#include "genotype/layer_rules.hpp"

namespace nas {

namespace {

double real(std::int64_t number) { return static_cast<double>(number); }

/// The gated short convolution (Liquid AI 2025, LFM2).
MixerCosts convolution_costs(const Mechanism& layer, const AttentionShape& shape) {
  const double tokens = real(shape.context);
  const double width = real(shape.width);
  MixerCosts costs{.parameters = 4 * shape.width * shape.width,
                   .flops = tokens * (8.0 * width * width + 2.0 * width)};
  add_convolution(layer.integer("conv"), shape.width, shape.context, costs);
  return costs;
}

/// What comes in, in three parts, and what goes out.
double least_values(const Architecture& architecture, const Mechanism& /*layer*/) {
  return 4.0 * real(architecture.width);
}

void set_defaults(Mechanism& layer) { layer.set("conv", 3); }

void require_valid(const Architecture& /*architecture*/, const Mechanism& layer) {
  require(layer.integer("conv") >= 2, "conv", std::to_string(layer.integer("conv")),
          "be in [2, 8] as the mixer");
}

NAS_REGISTER_MIXER_KIND(.key = "conv", .genes = {{"conv", {}}, {"smear", {}}},
                        .set_defaults = set_defaults, .require_valid = require_valid,
                        .costs = convolution_costs, .least_values = least_values);

}  // namespace

}  // namespace nas
