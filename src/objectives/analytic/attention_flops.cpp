#include "genotype/costs.hpp"
#include "search/objective.hpp"

namespace nas {
namespace {

Objective attention_flops(const Parameters& settings) {
  return at_context(settings, "FLOP", nas::attention_flops);
}

NAS_REGISTER_OBJECTIVE({.key = "attention_flops",
                        .summary = "the part of flops that the attention layers take: projections, "
                                   "scores, normalization, weighted sum, gate",
                        .settings = {context_setting()},
                        .file = __FILE__},
                       attention_flops);

}  // namespace
}  // namespace nas
