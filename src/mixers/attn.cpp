#include "nn/attention_layer.hpp"
#include "nn/mixers.hpp"

namespace nas::nn {

namespace {

/// Causal multi-head attention.
class Attention final : public Mixer {
 public:
  Attention(const MixerContext& context, const ParameterScope& scope)
      : layer_(context.mechanisms, context.shape, context.semantics, scope, context.output_start,
               context.layer) {}

  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& residual, const Pass& pass,
                        std::uint64_t site) override {
    return layer_.forward(x, residual, pass, site);
  }
  [[nodiscard]] std::unique_ptr<State> start(std::int64_t room) const override {
    return layer_.start(room);
  }
  torch::Tensor step(const torch::Tensor& x, const torch::Tensor& residual, const Pass& pass,
                     State& state) override {
    return layer_.step(x, residual, pass, state);
  }

 private:
  AttentionLayer layer_;
};

NAS_REGISTER_MIXER(Attention, .key = "attn", .summary = "causal multi-head attention");

}  // namespace

}  // namespace nas::nn
