#include "core/setting_forms.hpp"
#include "genotype/costs.hpp"
#include "search/objective.hpp"

namespace nas {
namespace {

Objective state_bytes(const Parameters& settings) {
  const auto tokens = settings.get<std::int64_t>("tokens");
  return {.unit = "B", .analytic = [tokens](const Subject& subject) {
            return static_cast<double>(state_bytes(subject.architecture, tokens));
          }};
}

NAS_REGISTER_OBJECTIVE(
    {.key = "state_bytes",
     .summary = "bytes of inference state of one sequence: the key/value cache "
                "of all layers in float32, and what the mechanism adds",
     .settings = {setting::integer("tokens", 1, 1, 1e9,
                                   "tokens of the sequence so far; where a window or a "
                                   "recurrence bounds the state, more cost nothing")},
     .file = __FILE__},
    state_bytes);

}  // namespace
}  // namespace nas
