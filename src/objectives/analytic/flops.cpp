#include "genotype/costs.hpp"
#include "search/objective.hpp"

namespace nas {
namespace {

Objective flops(const Parameters& settings) {
  return at_context(settings, "FLOP", nas::forward_flops);
}

NAS_REGISTER_OBJECTIVE({.key = "flops",
                        .summary = "floating-point operations of a forward pass over one sequence, "
                                   "by formula (Kaplan et al. 2020); a multiply-add counts 2",
                        .settings = {context_setting()},
                        .file = __FILE__},
                       flops);

}  // namespace
}  // namespace nas
