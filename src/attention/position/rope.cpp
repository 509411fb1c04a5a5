#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <ATen/Dispatch.h>

#include "nn/attention.hpp"
#include "ops/device_copy.hpp"

namespace nas::nn {
namespace {

/// Rotary position embedding, by halves: entries m and m + R/2 of the first R = fraction d of a head
/// turn by t f_m, f_m = base^(-2m/R), at place t = 0, 1, ..., so that a score depends on the distance alone.
/// With rope_factor a, f_m is divided by a; with rope_original L_0 only where turns are fewer in L_0 tokens than
/// n = L_0 f_m / 2 pi = low, from n = high on not, and between them f_m (s + (1 - s) / a), s = (n - low) / (high - low)
/// (Llama Team 2024, arXiv:2407.21783, section 3.4.1).
///
/// Only sums and products of elements, so that results do not depend on the array.
/// @see Su et al. (2021), arXiv:2104.09864, equation 34, there with neighbouring entries in place of
/// halves: another order of the rows of W_q and W_k.
class Rope final : public Position {
 public:
  Rope(const LayerContext& context, const ParameterScope& /*scope*/)
      : half_(std::llround(context.shape.sizes.real("rope_fraction") *
                           static_cast<double>(context.shape.head_width())) /
              2),
        frequencies_(static_cast<std::size_t>(half_)) {
    const auto& sizes = context.shape.sizes;
    const double factor = sizes.real("rope_factor");
    const double low = sizes.real("rope_low"), high = sizes.real("rope_high");
    const auto original = static_cast<double>(sizes.integer("rope_original"));
    for (std::int64_t m = 0; m < half_; ++m) {
      auto& frequency = frequencies_[static_cast<std::size_t>(m)];
      frequency =
          std::pow(sizes.real("rope_base"), -static_cast<double>(m) / static_cast<double>(half_));
      if (factor == 1.0) continue;
      const double turns = original * frequency / (2.0 * std::numbers::pi);
      const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
      frequency *= original > 0.0 ? kept + (1.0 - kept) / factor : 1.0 / factor;
    }
  }

  bool maps() const override { return true; }

  torch::Tensor mapped(const torch::Tensor& vectors, std::int64_t first_place) const override {
    if (half_ == 0) return vectors;
    turn_to(first_place, vectors);
    if (vectors.device().is_cpu() && !(at::GradMode::is_enabled() && vectors.requires_grad())) {
      auto turned = at::empty(vectors.sizes(), vectors.options());
      AT_DISPATCH_FLOATING_TYPES(vectors.scalar_type(), "rope", [&] {
        turn<scalar_t>(vectors.contiguous(), first_place, turned.data_ptr<scalar_t>());
      });
      return turned;
    }
    const auto cosines = cosines_.narrow(0, first_place, vectors.size(2));
    const auto sines = sines_.narrow(0, first_place, vectors.size(2));
    const auto first = vectors.narrow(-1, 0, half_);
    const auto second = vectors.narrow(-1, half_, half_);
    return at::cat({first * cosines - second * sines, second * cosines + first * sines,
                    vectors.narrow(-1, 2 * half_, vectors.size(-1) - 2 * half_)},
                   -1);
  }

 private:
  /// The same numbers in one pass. @param vectors  (..., T, H, d), contiguous.
  template <class Real>
  void turn(const torch::Tensor& vectors, std::int64_t first_place, Real* to) const {
    const auto tokens = vectors.size(2), heads = vectors.size(3), width = vectors.size(4);
    const auto* from = vectors.data_ptr<Real>();
    for (std::int64_t i = 0; i < vectors.numel() / width; ++i, from += width, to += width) {
      const auto row = (first_place + i / heads % tokens) * half_;
      const auto* cosine = cosines_.data_ptr<Real>() + row;
      const auto* sine = sines_.data_ptr<Real>() + row;
      for (std::int64_t m = 0; m < half_; ++m) {
        to[m] = from[m] * cosine[m] - from[half_ + m] * sine[m];
        to[half_ + m] = from[half_ + m] * cosine[m] + from[m] * sine[m];
      }
      std::copy(from + 2 * half_, from + width, to + 2 * half_);
    }
  }

  /// Makes the tables (places, 1, R/2) for these vectors, in double and rounded once, unless they
  /// are there. For vectors from a later place they are made longer than needed, since decoding goes
  /// on from there.
  void turn_to(std::int64_t first_place, const torch::Tensor& vectors) const {
    const auto end = first_place + vectors.size(2);
    if (cosines_.defined() && cosines_.size(0) >= end && cosines_.device() == vectors.device() &&
        cosines_.scalar_type() == vectors.scalar_type()) {
      return;
    }
    const auto tokens = first_place == 0 ? end : 2 * end;
    std::vector<double> cosines, sines;
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t m = 0; m < half_; ++m) {
        const double angle = static_cast<double>(t) * frequencies_[static_cast<std::size_t>(m)];
        cosines.push_back(std::cos(angle));
        sines.push_back(std::sin(angle));
      }
    }
    const auto there = [&](const std::vector<double>& values) {
      const auto table = at::tensor(values, at::TensorOptions(at::kDouble));
      return sent(table.to(vectors.scalar_type()), vectors.device()).view({tokens, 1, half_});
    };
    cosines_ = there(cosines);
    sines_ = there(sines);
  }

  std::int64_t half_;  // R/2
  std::vector<double> frequencies_;
  mutable torch::Tensor cosines_, sines_;  // of the last device and type
};

// It works on q and k, before the fused kernel.
NAS_REGISTER_POSITION(
    Rope, .key = "rope",
    .summary =
        "q and k rotate by place: entries m, m + R/2 of the first R = rope_fraction d by t "
        "rope_base^(-2m/R) (Su et al. 2021, arXiv:2104.09864)",
    .flops =
        [](const AttentionShape& shape) {
          return 3.0 * shape.sizes.real("rope_fraction") *
                 shape.at_each_token(shape.inner() + shape.own_key_width());
        },
    .fused = true);

}  // namespace
}  // namespace nas::nn
