#include "search/objective.hpp"

namespace nas {
namespace {

Objective attention_flops(const Parameters& settings) {
  const auto context = settings.get<std::int64_t>("context");
  return {.unit = "FLOP", .analytic = [context](const Subject& subject) {
            auto architecture = subject.architecture;
            if (context > 0) architecture.context = context;
            return attention_flops(architecture);
          }};
}

NAS_REGISTER_OBJECTIVE({.key = "attention_flops",
                        .summary = "the part of flops that the attention layers take: projections, "
                                   "scores, normalization, weighted sum, gate",
                        .settings = {{.name = "context",
                                      .default_value = std::int64_t{0},
                                      .help = "length of the sequence, tokens; 0 = the model's",
                                      .min = 0,
                                      .max = 1e6}},
                        .file = __FILE__},
                       attention_flops);

}  // namespace
}  // namespace nas
