#pragma once

#include <string>

#include "genotype/component.hpp"
#include "genotype/layer_rules.hpp"

namespace nas {

/// Registers stand-ins for the components of the paper under both semantics, and for some others:
/// the real descriptions stand beside the modules that compute them, and those link Torch.
inline bool register_paper_components() {
  const auto square = [](const AttentionShape& shape) {
    return static_cast<double>(shape.context * shape.context);
  };
  const auto scores = [square](double each) {
    return [square, each](const AttentionShape& shape) { return each * square(shape); };
  };
  const auto add = [](Component component) { components().add(std::move(component)); };

  for (const std::string key : {"dot", "silu_dot"}) {
    add({.gene = "similarity", .key = key, .summary = "similarity " + key, .flops = scores(256)});
  }
  add({.gene = "similarity",
       .key = "cosine",
       .summary = "s = (q/|q|).(k/|k|)",
       .voids = {"qk_norm"},
       .flops = scores(256)});
  add({.gene = "similarity",
       .key = "additive",
       .summary = "s = v.tanh(W_q q + W_k k + b)",
       .voids = {"qk_norm"},
       .parameters =
           [](const AttentionShape& shape) {
             return 2 * shape.head_width() * shape.head_width() + 2 * shape.head_width();
           },
       .flops = scores(512),
       .state_bytes = [](const AttentionShape& shape) { return 4 * shape.width * shape.context; }});
  for (const std::string key : {"softmax", "sparsemax", "sigmoid_norm"}) {
    add({.gene = "normalization", .key = key, .summary = "normalization " + key});
  }
  add({.gene = "normalization",
       .key = "relu_norm",
       .summary = "w = relu(s) / sum",
       .voids = {"temperature"}});
  add({.gene = "normalization",
       .key = "topk_quarter",
       .summary = "softmax over the largest quarter",
       .prefix_consistent = false});
  add({.gene = "gating", .key = "none", .summary = "h + o: no gate"});
  for (const std::string key : {"input_gate", "output_gate", "highway", "normed_highway"}) {
    add({.gene = "gating",
         .key = key,
         .summary = "gating " + key,
         .parameters = [](const AttentionShape& shape) {
           return shape.width * (shape.width + 1);
         }});
  }
  for (const std::string key : {"fixed", "learned", "per_query", "sqrt_d", "shifted_abs"}) {
    add({.gene = "temperature", .key = key, .summary = "temperature " + key});
  }
  add({.gene = "temperature",
       .key = "sequence_mean",
       .summary = "s / (sigmoid(w.mean_t x_t + b) + 0.5)",
       .causal = false,
       .prefix_consistent = false});
  for (const std::string key : {"delta", "delta2"}) {
    add({.gene = "update",
         .key = key,
         .summary = "update " + key,
         .voids = {"feature", "position"},
         .erases = true});
  }
  add({.gene = "update", .key = "add", .summary = "update add", .voids = {"neg_eigen"}});
  add({.gene = "decay", .key = "scalar", .summary = "decay scalar"});
  for (const std::string key : {"fixed", "scalar"}) {
    add({.gene = "decay", .mixer = "recurrent", .key = key, .summary = "decay " + key});
  }
  add({.gene = "decay",
       .mixer = "recurrent",
       .key = "channel",
       .summary = "decay channel",
       .sizes = {integer("decay_rank", "rank", 16, 1, 3),
                 {.name = "decay_tau", .default_value = 16.0, .help = "divisor", .min = 1.0},
                 {.name = "decay_form",
                  .default_value = "gla",
                  .help = "form",
                  .choices = {"gla", "softplus", "bounded"}}},
       .apply_rules = [](LayerRules& rules) {
         if (rules.layer().word("decay_form") != "gla") rules.clear({"decay_tau"});
       }});
  add({.gene = "gating",
       .mixer = "recurrent",
       .key = "sigmoid_gate",
       .summary = "gating sigmoid_gate",
       .sizes = {integer("gate_rank", "rank", 0, 0, 3)}});
  for (const std::string key : {"swish_gate", "elementwise_gate"}) {
    add({.gene = "gating", .mixer = "recurrent", .key = key, .summary = "gating " + key});
  }
  for (const std::string key : {"none", "rope"})
    add({.gene = "position", .key = key, .summary = "position " + key});
  add({.gene = "pattern", .key = "window", .summary = "pattern window"});
  add({.gene = "norm",
       .key = "layer",
       .summary = "norm layer",
       .parameters = [](const AttentionShape& shape) { return 2 * shape.width; }});
  add({.gene = "norm",
       .key = "rms",
       .summary = "norm rms",
       .parameters = [](const AttentionShape& shape) { return shape.width; }});
  const auto products = [](double each) {
    return [each](const AttentionShape& shape) {
      return each * static_cast<double>(shape.context * shape.width * shape.hidden);
    };
  };
  add({.gene = "ffn",
       .key = "gelu",
       .summary = "ffn gelu",
       .parameters =
           [](const AttentionShape& shape) {
             return 2 * shape.width * shape.hidden + shape.hidden + shape.width;
           },
       .flops = products(4.0)});
  add({.gene = "ffn",
       .key = "swiglu",
       .summary = "ffn swiglu",
       .parameters = [](const AttentionShape& shape) { return 3 * shape.width * shape.hidden; },
       .flops = products(6.0)});
  return true;
}

/// Registered before main, as plug-ins are.
[[maybe_unused]] inline const bool paper_components_registered = register_paper_components();

}  // namespace nas
