#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/visibility.hpp"

namespace nas {
namespace NAS_PUBLIC kernels {

/// What a gate s in (0, 1) multiplies something by: constant + gated s.
struct GateFactor {
  float constant = 0.0F;
  float gated = 0.0F;

  [[nodiscard]] constexpr bool is_zero() const { return constant == 0.0F && gated == 0.0F; }
};

/// A gate of attention, with input x and output o, beside the residual stream h:
///
///   attention reads input(s) x,   attended(s) o + copied(s) x + residual(s) h is added to h
///
/// As it is here, it is none.
struct Gate {
  GateFactor input{1.0F, 0.0F};
  GateFactor attended{1.0F, 0.0F};
  GateFactor copied{};
  GateFactor residual{};
};

inline constexpr std::size_t kGatedTerms = 3;

/// A sum of one model: sum_t factor_t(s) x_t with s = sigmoid(logit), element by element.
struct GatedSum {
  std::array<GateFactor, kGatedTerms> factors{};
  std::int32_t row = -1;  ///< which row of an array's logits is its; -1: it has none

  /// Whether s occurs in it.
  [[nodiscard]] constexpr bool is_gated() const {
    bool gated = false;
    for (const auto& factor : factors) gated = gated || factor.gated != 0.0F;
    return gated;
  }
};

/// One pointer per term.
template <class Real>
using GatedTerms = std::array<Real*, kGatedTerms>;

/// Over `size` elements. Terms whose factor is zero are not read, nor are logits where s does not
/// occur: their pointers may be null. A sum of one term that is neither gated nor scaled is an
/// exact copy.
template <class Real>
void gated_sum(const GatedSum& sum, const Real* logits, const GatedTerms<const Real>& terms,
               Real* out, std::int64_t size);

/// Gradients w.r.t. logits and terms, where not null: they are written, with zeros where the sum
/// does not read them.
///
/// @param gradient  w.r.t. the sum.
template <class Real>
void gated_sum_backward(const GatedSum& sum, const Real* logits,
                        const GatedTerms<const Real>& terms, const Real* gradient, Real* by_logits,
                        const GatedTerms<Real>& by_terms, std::int64_t size);

}  // namespace kernels
}  // namespace nas
