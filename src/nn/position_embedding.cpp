#include "nn/position_embedding.hpp"

#include <bit>
#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "ops/device_copy.hpp"
#include "ops/product.hpp"

namespace nas::nn {

PositionEmbedding::PositionEmbedding(const Architecture& architecture, const ParameterScope& scope)
    : models_(static_cast<std::int64_t>(scope.models().size())),
      width_(architecture.width),
      mode_(unrounded(scope.mode())) {
  const auto& kind = architecture.genes.word("position_embedding");
  if (kind == "learned") {
    learned_ = scope.add("position.weight", {architecture.context, architecture.width},
                         Start::normal(), Decay::no);
  } else if (kind == "sinusoidal") {
    // A sinusoid's root mean square is 1/sqrt(2): it starts as large as tokens, N(0, 0.02^2).
    scale_ = scope.add("position_scale", {1}, Start::constant(0.0283), Decay::no);
  } else if (kind != "none") {
    throw InputError("position_embedding = " + kind + ", must be learned, sinusoidal or none");
  }
}

torch::Tensor PositionEmbedding::operator()(std::int64_t tokens) {
  if (learned_.defined()) return learned_;
  if (!scale_.defined()) return {};
  // A product, whose gradient w.r.t. c is summed in an order that depends on nothing else.
  return linear(sinusoids(tokens), scale_.view({models_, 1, 1}), {}, mode_)
      .view({models_, tokens, width_});
}

torch::Tensor PositionEmbedding::of_place(std::int64_t place) {
  if (learned_.defined()) return learned_.narrow(1, place, 1);
  if (!scale_.defined()) return {};
  // Of as many places as a power of two, so that they are made seldom.
  const auto places = std::bit_ceil(static_cast<std::uint64_t>(place) + 1);
  const auto all = sinusoids(static_cast<std::int64_t>(places)).view({models_, -1, width_});
  return all.narrow(1, place, 1) * scale_.view({models_, 1, 1});
}

const torch::Tensor& PositionEmbedding::sinusoids(std::int64_t tokens) {
  const bool known = sinusoids_.defined() && sinusoids_.size(1) == tokens * width_ &&
                     sinusoids_.device() == scale_.device() &&
                     sinusoids_.scalar_type() == scale_.scalar_type();
  if (known) return sinusoids_;
  std::vector<double> values;
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t m = 0; m < width_; ++m) {
      const auto power = static_cast<double>(m - m % 2) / static_cast<double>(width_);
      const auto angle = static_cast<double>(t) * std::pow(10000.0, -power);
      values.push_back(m % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  const auto one = at::tensor(values, at::TensorOptions(at::kDouble)).to(scale_.scalar_type());
  sinusoids_ = sent(one.view({1, -1, 1}).repeat({models_, 1, 1}), scale_.device());
  return sinusoids_;
}

}  // namespace nas::nn
