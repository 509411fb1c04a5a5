#include "search/objective.hpp"

namespace nas {
namespace {

Objective flops(const Parameters& settings) {
  const auto context = settings.get<std::int64_t>("context");
  return {.unit = "FLOP", .analytic = [context](const Subject& subject) {
            auto architecture = subject.architecture;
            if (context > 0) architecture.context = context;
            return forward_flops(architecture);
          }};
}

NAS_REGISTER_OBJECTIVE({.key = "flops",
                        .summary = "floating-point operations of a forward pass over one sequence, "
                                   "by formula (Kaplan et al. 2020); a multiply-add counts 2",
                        .settings = {{.name = "context",
                                      .default_value = std::int64_t{0},
                                      .help = "length of the sequence, tokens; 0 = the model's",
                                      .min = 0,
                                      .max = 1e6}},
                        .file = __FILE__},
                       flops);

}  // namespace
}  // namespace nas
