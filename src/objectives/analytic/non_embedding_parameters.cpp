#include "genotype/costs.hpp"
#include "search/objective.hpp"

namespace nas {
namespace {

Objective non_embedding_parameters(const Parameters& /*settings*/) {
  return {.unit = "1", .analytic = [](const Subject& subject) {
            return static_cast<double>(num_non_embedding_parameters(subject.architecture));
          }};
}

NAS_REGISTER_OBJECTIVE(
    {.key = "non_embedding_parameters",
     .summary = "number of trained parameters without those of tokens and positions: embedding, "
                "output matrix, value embeddings",
     .settings = {},
     .file = __FILE__},
    non_embedding_parameters);

}  // namespace
}  // namespace nas
