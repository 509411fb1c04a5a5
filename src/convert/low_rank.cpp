#include "convert/low_rank.hpp"

#include <cmath>
#include <utility>

#include "nn/transformer.hpp"

namespace nas {

LowRank::LowRank(nn::Parameter weight, std::int64_t rank)
    : weight_(std::move(weight)), base_(weight_.tensor.detach().clone()) {
  const auto factor = [&](const char* name, std::int64_t side, nn::Start start) {
    return nn::Parameter{weight_.name + name,
                         at::empty({1, base_.size(side), rank}, base_.options()),
                         {0},
                         std::move(start),
                         nn::Decay::no};
  };
  std::vector<nn::Parameter> factors{
      factor(".a", 1, nn::Start::constant(0.0)),
      factor(".b", 2, nn::Start::normal(1.0 / std::sqrt(static_cast<double>(rank))))};
  nn::initialise(factors, {nn::StartSeed{}});
  factors_ = {factors[0], factors[1]};
}

void LowRank::take_gradient() {
  const at::NoGradGuard no_grad;
  const auto slope = weight_.tensor.grad();
  if (!slope.defined()) return;
  auto &a = factors_[0].tensor, &b = factors_[1].tensor;
  a.mutable_grad() = at::bmm(slope, b);
  b.mutable_grad() = at::bmm(slope.transpose(1, 2), a);
  weight_.tensor.mutable_grad() = torch::Tensor();
}

void LowRank::merge() {
  const at::NoGradGuard no_grad;
  weight_.tensor.copy_(at::baddbmm(base_, factors_[0].tensor, factors_[1].tensor.transpose(1, 2)));
}

}  // namespace nas
