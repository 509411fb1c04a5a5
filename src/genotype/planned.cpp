#include "genotype/planned.hpp"

#include <string>
#include <vector>

#include "core/error.hpp"

namespace nas {

namespace {

double real(std::int64_t number) { return static_cast<double>(number); }

void add_sigmoid_gate(std::vector<Component>& planned) {
  planned.push_back(
      {.gene = "gating",
       .key = "sigmoid_gate",
       .summary = "o sigmoid(W x + b) before the output projection, W = W_2 W_1 of rank gate_rank "
                  "where that is not 0, b starts at 2 (Kimi Team 2025, arXiv:2510.26692)",
       .mixer = "recurrent",
       .parameters =
           [](const AttentionShape& shape) {
             const auto rank = shape.sizes.integer("gate_rank");
             return (rank > 0 ? 2 * rank : shape.width) * shape.width + shape.width;
           },
       .flops =
           [](const AttentionShape& shape) {
             const auto rank = shape.sizes.integer("gate_rank");
             const double products = real(rank > 0 ? 2 * rank : shape.width);
             return real(shape.context) * real(shape.width) * (2.0 * products + 3.0);
           }});
}

/// Costs as everywhere: a multiply-add 2, an elementary function 1, comparisons 0.
std::vector<Component> make_planned() {
  std::vector<Component> planned;
  planned.push_back(
      {.gene = "gating",
       .key = "swish_gate",
       .summary = "o SiLU(W x) before the output projection (Sun et al. 2023, "
                  "arXiv:2307.08621)",
       .mixer = "recurrent",
       .parameters = [](const AttentionShape& shape) { return shape.width * shape.width; },
       .flops =
           [](const AttentionShape& shape) {
             return real(shape.context) * real(shape.width) * (2.0 * real(shape.width) + 3.0);
           }});
  add_sigmoid_gate(planned);
  planned.push_back({.gene = "decay",
                     .key = "fixed",
                     .summary = "alpha_h = 1 - 2^(-5-h) (Sun et al. 2023, arXiv:2307.08621)",
                     .mixer = "recurrent"});
  planned.push_back(
      {.gene = "decay",
       .key = "channel",
       .summary = "alpha = exp(logsigmoid(W_2 W_1 x + b) / decay_tau) of each channel of a key "
                  "(Yang et al. 2023, arXiv:2312.06635); decay_form softplus: exp(-e^A_h "
                  "softplus(W_2 W_1 x + b)) (Kimi Team 2025, arXiv:2510.26692)",
       .mixer = "recurrent"});
  planned.push_back({.gene = "position",
                     .key = "cope",
                     .summary = "s_ij += q_i.e[p_ij], p_ij counts gates between (Golovneva et al. "
                                "2024, arXiv:2405.18719)",
                     .parameters =
                         [](const AttentionShape& shape) {
                           return shape.sizes.integer("cope_positions") * shape.head_width();
                         },
                     .flops =
                         [](const AttentionShape& shape) {
                           return 2.0 * real(shape.context) * real(shape.width) *
                                      real(shape.sizes.integer("cope_positions")) +
                                  5.0 * shape.pairs() * real(shape.heads);
                         }});
  planned.push_back({.gene = "position",
                     .key = "path",
                     .summary = "q and k through products of reflections between them (Yang et al. "
                                "2025, arXiv:2505.16381)",
                     .parameters =
                         [](const AttentionShape& shape) {
                           return shape.width * shape.width + shape.heads * shape.width;
                         },
                     .flops =
                         [](const AttentionShape& shape) {
                           const double width = real(shape.width);
                           const double tokens = real(shape.context);
                           return 4.0 * shape.pairs() * width + 2.0 * tokens * width * width +
                                  2.0 * tokens * width * real(shape.heads);
                         }});
  return planned;
}

}  // namespace

const Component& described(std::string_view gene, std::string_view key) {
  if (components().contains(gene, key)) return components().at(gene, key);
  static const auto kPlanned = make_planned();
  for (const auto& component : kPlanned) {
    if (component.gene == gene && component.key == key) return component;
  }
  throw InputError(std::string(gene) + " = " + std::string(key) + ": no module computes it");
}

}  // namespace nas
