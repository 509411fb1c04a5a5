#pragma once

#include <cstdint>
#include <memory>

#include <torch/types.h>

#include "nn/mixer.hpp"
#include "ops/parameter.hpp"

namespace nas::nn {

/// A mixer behind a look at the token before:
///
///   x_t <- x_t + s sigmoid(w . x_t[:12]) x_{t-1},  x_{-1} = 0
///
/// s is one number, which starts at 0: then there is no such look.
/// @see the records of Jordan et al. (2024), modded-nanogpt.
class SmearedMixer final : public Mixer {
 public:
  /// The entries of x that the gate reads, at most.
  static constexpr std::int64_t kEntries = 12;

  SmearedMixer(std::unique_ptr<Mixer> mixer, std::int64_t width, const ParameterScope& scope);

  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& residual, const Pass& pass,
                        std::uint64_t site) override;
  /// The mixer's, and the last x.
  [[nodiscard]] std::unique_ptr<State> start(std::int64_t room) const override;
  torch::Tensor step(const torch::Tensor& x, const torch::Tensor& residual, const Pass& pass,
                     State& state) override;

 private:
  struct Kept;

  /// @param before  x of the token before each, as x.
  [[nodiscard]] torch::Tensor smeared(const torch::Tensor& x, const torch::Tensor& before) const;

  std::unique_ptr<Mixer> mixer_;
  torch::Tensor weight_;  // (M, 12)
  torch::Tensor scale_;   // (M, 1)
};

}  // namespace nas::nn
