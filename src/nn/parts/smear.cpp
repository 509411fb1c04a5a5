#include "nn/parts/smear.hpp"

#include <algorithm>
#include <utility>

#include "ops/product.hpp"

namespace nas::nn {

struct SmearedMixer::Kept final : Mixer::State {
  explicit Kept(std::unique_ptr<State> state) : inner(std::move(state)) {}

  [[nodiscard]] std::unique_ptr<State> copy() const override {
    auto copy = std::make_unique<Kept>(inner->copy());
    copy->latest = latest;  // never written to
    return copy;
  }
  [[nodiscard]] std::int64_t numbers() const override {
    return inner->numbers() + (latest.defined() ? latest.size(3) : 0);
  }

  std::unique_ptr<State> inner;
  torch::Tensor latest{};  ///< x of the last token, (1, B, 1, D)
};

SmearedMixer::SmearedMixer(std::unique_ptr<Mixer> mixer, std::int64_t width,
                           const ParameterScope& scope)
    : mixer_(std::move(mixer)),
      weight_(scope.add("weight", {std::min(width, kEntries)}, Start::normal(), Decay::no)),
      scale_(scope.add("scale", {1}, Start::constant(0.0), Decay::no)) {}

torch::Tensor SmearedMixer::smeared(const torch::Tensor& x, const torch::Tensor& before) const {
  return model_by_model(
      [](const torch::Tensor& part, const torch::Tensor& earlier, const torch::Tensor& weight,
         const torch::Tensor& scale) {
        const auto entries = weight.size(1);
        const auto logits = (part.narrow(-1, 0, entries) * weight.view({-1, 1, 1, entries}))
                                .sum(-1, /*keepdim=*/true);
        return part + scale.view({-1, 1, 1, 1}) * logits.sigmoid() * earlier;
      },
      x, before, weight_, scale_);
}

torch::Tensor SmearedMixer::forward(const torch::Tensor& x, const torch::Tensor& residual,
                                    const Pass& pass, std::uint64_t site) {
  const auto before = at::constant_pad_nd(x.narrow(2, 0, x.size(2) - 1), {0, 0, 1, 0});
  return mixer_->forward(smeared(x, before), residual, pass, site);
}

std::unique_ptr<Mixer::State> SmearedMixer::start(std::int64_t room) const {
  return std::make_unique<Kept>(mixer_->start(room));
}

torch::Tensor SmearedMixer::step(const torch::Tensor& x, const torch::Tensor& residual,
                                 const Pass& pass, State& given) {
  const at::NoGradGuard no_grad;
  auto& state = dynamic_cast<Kept&>(given);
  const auto before = std::exchange(state.latest, x);
  return mixer_->step(smeared(x, before.defined() ? before : at::zeros_like(x)), residual, pass,
                      *state.inner);
}

}  // namespace nas::nn
