// A training step of an array of models, on any device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <torch/types.h>

#include "core/seed.hpp"
#include "genotype/mechanism_name.hpp"
#include "nn/transformer.hpp"
#include "ops/torch_compat.hpp"

namespace nas::nn::test {

inline Architecture small(const std::string& mechanism) {
  return {.stack = {parse_mechanism(mechanism, Semantics::corrected)},
          .layers = 1,
          .width = 24,
          .heads = 3,
          .context = 37,
          .vocabulary = 29};
}

/// Every option of the paper's genes, with and without biases.
inline std::vector<Architecture> various_models() {
  return {small("dot|softmax|none|fixed|bias|0.1"),
          small("additive|sparsemax|output_gate|learned|no_bias|0"),
          small("silu_dot|relu_norm|highway|fixed|bias|0.2"),
          small("cosine|sigmoid_norm|input_gate|per_query|no_bias|0.1"),
          small("bilinear|entmax15|normed_highway|shifted_abs|bias|0"),
          small("additive|top_k|none|per_query|bias|0.3"),
          small("dot|softmax1|none|learned|bias|0.1"),
          small("cosine|topk_quarter|highway|sqrt_d|no_bias|0.1")};
}

/// Losses, scores and gradients, by model and name.
struct Step {
  torch::Tensor losses, nll;
  std::vector<std::map<std::string, torch::Tensor>> gradients;
};

/// From where a step is taken.
enum class From {
  start,   ///< where training runs start
  spread,  ///< where scores differ, so that no gradient is small
};

/// Draws all parameters as check_causality() does: normal with deviation 0.5, less for matrices
/// that add up more than its 16 elements.
inline void spread(TransformerArray& models, const std::vector<std::size_t>& places) {
  const at::NoGradGuard no_grad;
  for (const auto& parameter : models.parameters()) {
    for (std::size_t i = 0; i < parameter.models.size(); ++i) {
      auto tensor = parameter.tensor[static_cast<std::int64_t>(i)];
      const auto place = places[static_cast<std::size_t>(parameter.models[i])];
      const auto terms = std::max<std::int64_t>(tensor.dim() < 2 ? 1 : tensor.size(-1), 16);
      const double deviation = 0.5 * std::sqrt(16.0 / static_cast<double>(terms));
      const auto generator =
          make_generator(at::kCPU, derive_seed(place, 0, "spread", parameter.name));
      tensor.copy_(at::empty(tensor.sizes(), at::TensorOptions(at::kFloat))
                       .normal_(0.0, deviation, generator));
    }
  }
}

/// A step of the models at `places` of `all`: what a model draws depends on its place there.
/// @param again  whether layers are computed again for gradients.
inline Step step_of(const std::vector<Architecture>& all, const std::vector<std::size_t>& places,
                    torch::ScalarType type, torch::Device device = torch::kCPU,
                    From from = From::start, NumericalMode mode = NumericalMode::exact,
                    bool again = false) {
  constexpr std::int64_t kSequences = 2;
  std::vector<Architecture> architectures;
  std::vector<StartSeed> starts;
  std::vector<torch::Tensor> tokens;
  Pass pass{.training = true, .seeds = {}};
  for (const auto place : places) {
    architectures.push_back(all[place]);
    starts.push_back({place, 0});
    tokens.push_back(at::randint(all[place].vocabulary, {kSequences, all[place].context},
                                 make_generator(at::kCPU, place), at::TensorOptions(at::kLong)));
    pass.seeds.push_back(100 + place);
  }
  TransformerArray models(architectures, mode, device);
  models.initialise(starts);
  if (from == From::spread) spread(models, places);
  models.to(device, type);
  models.recompute_layers(again);
  const auto input = at::stack(tokens).to(device);
  const auto target = input.roll(1, 2);
  Step step;
  const auto losses = models.loss(input, target, pass);
  losses.sum().backward();
  step.losses = losses.detach().cpu();
  step.nll = models.scores(input, target).nll.cpu();
  step.gradients.resize(places.size());
  for (const auto& parameter : models.parameters()) {
    for (std::size_t i = 0; i < parameter.models.size(); ++i) {
      step.gradients[static_cast<std::size_t>(parameter.models[i])][parameter.name] =
          parameter.tensor.grad()[static_cast<std::int64_t>(i)].cpu();
    }
  }
  return step;
}

}  // namespace nas::nn::test
