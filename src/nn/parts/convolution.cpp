#include "nn/parts/convolution.hpp"

#include "ops/product.hpp"

namespace nas::nn {

ShortConvolution::ShortConvolution(const ParameterScope& scope, std::int64_t channels,
                                   std::int64_t taps)
    : weight_(scope.add("weight", {channels, taps}, Start::newest_tap(), Decay::no)) {}

torch::Tensor ShortConvolution::operator()(const torch::Tensor& z) const {
  return model_by_model(
      [](const torch::Tensor& part, const torch::Tensor& weight) {
        const auto taps = weight.size(2);
        const auto tokens = part.size(2);
        const auto padded = at::constant_pad_nd(part, {0, 0, taps - 1, 0});
        const auto by_channel = weight.unsqueeze(1).unsqueeze(1);  // (M, 1, 1, channels, K)
        auto sum = padded.narrow(2, 0, tokens) * by_channel.select(-1, 0);
        for (std::int64_t a = 1; a < taps; ++a) {
          sum = sum + padded.narrow(2, a, tokens) * by_channel.select(-1, a);
        }
        return sum;
      },
      z, weight_);
}

torch::Tensor ShortConvolution::next(const torch::Tensor& z, torch::Tensor& earlier) const {
  const auto kept = taps() - 1;
  const auto latest =
      earlier.defined() ? at::cat({earlier, z}, 2) : at::constant_pad_nd(z, {0, 0, kept, 0});
  earlier = latest.narrow(2, 1, kept);
  return (latest * weight_.transpose(1, 2).unsqueeze(1)).sum(2, /*keepdim=*/true);
}

}  // namespace nas::nn
