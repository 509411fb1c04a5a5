#include "genotype/planned.hpp"

#include <string>
#include <vector>

#include "core/error.hpp"

namespace nas {

namespace {

/// Costs as everywhere: a multiply-add 2, an elementary function 1, comparisons 0.
std::vector<Component> make_planned() {
  return {
      {.gene = "position",
       .key = "cope",
       .summary = "s_ij += q_i.e[p_ij], p_ij counts gates between (Golovneva et al. 2024, "
                  "arXiv:2405.18719)",
       .parameters =
           [](const AttentionShape& shape) {
             return shape.sizes.integer("cope_positions") * shape.head_width();
           },
       .flops =
           [](const AttentionShape& shape) {
             return shape.at_each_token(2 * shape.width * shape.sizes.integer("cope_positions")) +
                    5.0 * shape.pairs() * static_cast<double>(shape.heads);
           }},
      {.gene = "position",
       .key = "path",
       .summary = "q and k through products of reflections between them (Yang et al. 2025, "
                  "arXiv:2505.16381)",
       .parameters =
           [](const AttentionShape& shape) { return shape.width * (shape.width + shape.heads); },
       .flops =
           [](const AttentionShape& shape) {
             return 4.0 * shape.pairs() * static_cast<double>(shape.width) +
                    shape.at_each_token(2 * shape.width * (shape.width + shape.heads));
           }}};
}

}  // namespace

const Component& described(std::string_view gene, std::string_view key, std::string_view mixer) {
  if (const auto* component = components().find(gene, key, mixer)) return *component;
  static const auto kPlanned = make_planned();
  for (const auto& component : kPlanned) {
    if (component.gene == gene && component.key == key) return component;
  }
  throw InputError(std::string(gene) + " = " + std::string(key) + ": no module computes it");
}

}  // namespace nas
