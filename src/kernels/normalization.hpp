#pragma once

#include <cstdint>

#include "kernels/visibility.hpp"

namespace nas {
namespace NAS_PUBLIC kernels {

/// Rows of the fused kernels are padded to a multiple of this many elements: 64 bytes of floats,
/// the widest vector.
inline constexpr std::int64_t kPadding = 16;

constexpr std::int64_t padded(std::int64_t size) {
  return (size + kPadding - 1) / kPadding * kPadding;
}

/// Turns one query's scores into weights, and gradients back; plain functions, so that a component
/// may bring its own.
template <class Real>
struct RowKernel {
  /// Scores to weights, in place.
  ///
  /// @param row      `size` elements, a multiple of kPadding: scores of `visible` keys in their
  ///                 order, and -inf: behind them, with a window also before and between them. On
  ///                 return the weights, exactly 0 where the score was -inf.
  /// @param tokens   length of the sequence.
  /// @return a number that backward() needs.
  Real (*forward)(Real* row, std::int64_t visible, std::int64_t size, std::int64_t tokens);
  /// dL/dw to dL/ds, in place; 0 for hidden keys, where the gradient on entry may be any finite
  /// number.
  void (*backward)(const Real* weights, Real* gradient, std::int64_t size, Real statistic);
  /// forward() with one more key of score `sink`, whose weight is no part of the row. Null: the
  /// normalization has none.
  /// @return the weight p_0 of that key, so that dL/dsink = -p_0 <g, w>.
  Real (*forward_with_sink)(Real* row, std::int64_t visible, std::int64_t size,
                            Real sink) = nullptr;
};

/// A pair of kernels, and which of the normalizations below it is: other processors have kernels of
/// their own for those.
class RowNormalization {
 public:
  enum class Kind : std::int32_t {
    softmax,
    softmax1,
    relu_norm,
    sigmoid_norm,
    sparsemax,
    entmax15,
    top_k,
    topk_quarter,
    own,  ///< none of them: a component's own
    sink,
    sigmoid_attn,
    relu_n,
  };

  RowNormalization() = default;
  RowNormalization(RowKernel<float> in_float, RowKernel<double> in_double)
      : in_float_(in_float), in_double_(in_double) {}

  [[nodiscard]] Kind kind() const { return kind_; }

  template <class Real>
  [[nodiscard]] const RowKernel<Real>& kernel() const {
    if constexpr (sizeof(Real) == sizeof(float)) {
      return in_float_;
    } else {
      return in_double_;
    }
  }

 private:
  friend class KnownNormalization;

  RowKernel<float> in_float_{};
  RowKernel<double> in_double_{};
  Kind kind_ = Kind::own;
};

// What the components of these names compute (src/attention/normalization), with p the weights and
// g = dL/dp:
RowNormalization softmax();       ///< dL/ds = p (g - <g, p>)
RowNormalization softmax1();      ///< the same
RowNormalization relu_norm();     ///< [p > 0] (g - <g, p>) / sum; the statistic is sum + 1e-8
RowNormalization sigmoid_norm();  ///< o (1 - o) (g - <g, p>) / sum, o = p sum; likewise
/// On the support g - its mean. The threshold by Newton's method on the convex, piecewise linear
/// sum max(s - tau, 0) - 1 from the left (Michelot 1986): exact after finitely many steps.
RowNormalization sparsemax();
/// r g - r <r, g> / sum r, r = sqrt(p). The threshold by Newton's method on the convex
/// sum max(s/2 - tau, 0)^2 - 1 from the left: quadratic convergence.
RowNormalization entmax15();
/// softmax's, over the ceil(n/4) largest of n visible scores. The threshold by bisection on the
/// bits of the scores; of equal scores at the threshold the first ones.
RowNormalization top_k();
/// The same over max(1, floor(T/4)).
RowNormalization topk_quarter();
/// Softmax with one more key, of a score c of its own and without a value: e^s_j / (e^c + sum e^s)
/// (gpt-oss, arXiv:2508.10925). Without a sink, c = -inf, it is softmax.
RowNormalization sink();
/// p = sigmoid(s - log n) of n visible scores (arXiv:2409.04431); dL/ds = p (1 - p) g.
RowNormalization sigmoid_attn();
/// p = max(s, 0) / n (arXiv:2309.08586); dL/ds = [p > 0] g / n; the statistic is n.
RowNormalization relu_n();

}  // namespace kernels
}  // namespace nas
