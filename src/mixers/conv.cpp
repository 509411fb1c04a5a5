#include "nn/mixers.hpp"
#include "nn/parts/convolution.hpp"
#include "ops/parameter.hpp"

namespace nas::nn {

namespace {

/// The gated short convolution of LFM2:
///
///   b, c, u = W_in x in thirds,  y = W_out (c . conv_K(b . u))
///
/// @see Liquid AI (2025), LFM2.
class GatedConvolution final : public Mixer {
 public:
  GatedConvolution(const MixerContext& context, const ParameterScope& scope)
      : in_proj_(Linear::with_biases_of(scope.child("in_proj"), context.shape.width,
                                        3 * context.shape.width, {})),
        convolution_(scope.child("conv"), context.shape.width,
                     context.mechanisms.front().integer("conv")),
        out_proj_(Linear::with_biases_of(scope.child("out_proj"), context.shape.width,
                                         context.shape.width, {}, context.output_start)) {}

  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& /*residual*/,
                        const Pass& /*pass*/, std::uint64_t /*site*/) override {
    const auto parts = in_proj_(x).chunk(3, -1);
    return out_proj_(parts[1] * convolution_(parts[0] * parts[2]));
  }

  [[nodiscard]] std::unique_ptr<State> start(std::int64_t /*room*/) const override {
    return std::make_unique<Latest>();
  }
  torch::Tensor step(const torch::Tensor& x, const torch::Tensor& /*residual*/,
                     const Pass& /*pass*/, State& state) override {
    const at::NoGradGuard no_grad;
    const auto parts = in_proj_(x).chunk(3, -1);
    auto& earlier = dynamic_cast<Latest&>(state).inputs;
    return out_proj_(parts[1] * convolution_.next(parts[0] * parts[2], earlier));
  }

 private:
  struct Latest final : State {
    [[nodiscard]] std::unique_ptr<State> copy() const override {
      return std::make_unique<Latest>(*this);
    }
    [[nodiscard]] std::int64_t numbers() const override {
      return inputs.defined() ? inputs.size(2) * inputs.size(3) : 0;
    }
    torch::Tensor inputs{};  ///< of the convolution, (1, B, K - 1, D)
  };

  Linear in_proj_;
  ShortConvolution convolution_;
  Linear out_proj_;
};

NAS_REGISTER_MIXER(GatedConvolution, .key = "conv",
                   .summary =
                       "W_out (c . conv(b . u)), b, c, u = W_in x: a short convolution between two "
                       "gates (Liquid AI 2025, LFM2)");

}  // namespace

}  // namespace nas::nn
