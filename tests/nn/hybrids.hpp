// A small Llama with drawn weights, and hybrids of it.
#pragma once

#include "convert/hybrid.hpp"
#include "genotype/architecture_name.hpp"
#include "ops/torch_compat.hpp"

namespace nas::testing {

inline constexpr const char* kLayer = "attn{kv_heads=2,position=rope,bias=none,dropout=0}+swiglu";

inline Architecture llama() {
  Architecture frame{.layers = 4,
                     .width = 32,
                     .heads = 4,
                     .context = 48,
                     .vocabulary = 97,
                     .feed_forward = 2,
                     .dropout = 0.0};
  std::string name = "model{position_embedding=none,norm=rms}";
  for (int i = 0; i < 4; ++i) name += "/" + std::string(kLayer);
  return canonical(parse_model(name, frame));
}

inline Weights drawn_weights(const Architecture& architecture) {
  const at::NoGradGuard no_grad;
  nn::Transformer model(architecture, NumericalMode::exact);
  const auto generator = nn::make_generator(at::kCPU, 7);
  for (auto& [name, tensor] : model.parameters()) tensor.normal_(0.0, 0.3, generator);
  return weights_of(model);
}

inline torch::Tensor logits(HybridModel& model, const Placement& placement,
                            const torch::Tensor& tokens) {
  auto stream = model.embedded(tokens);
  std::vector<nn::SharedKeys> shared;
  nn::Pass pass;
  pass.shared = &shared;
  for (std::int64_t i = 0; i < std::ssize(placement); ++i)
    stream = model.behind(placement, i, stream, pass);
  return model.logits(model.features(stream));
}

inline Conversion conversion(const std::vector<std::string>& blocks) {
  std::vector<LayerBlock> parsed;
  for (const auto& text : blocks) parsed.push_back(parse_block(text));
  return {llama(), std::move(parsed)};
}

inline torch::Tensor some_tokens(std::int64_t count, std::uint64_t seed = 1) {
  return at::randint(97, {count}, nn::make_generator(at::kCPU, seed), at::TensorOptions(at::kLong));
}

}  // namespace nas::testing
