#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/normalization.cpp"
#include <algorithm>
#include <cmath>
#include <limits>

#include <hwy/foreach_target.h>

#include "kernels/normalization.hpp"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

/// Sum over a row of term(vector).
template <class Real, class Term>
HWY_INLINE Real sum_over(const Real* HWY_RESTRICT row, std::int64_t size, const Term& term) {
  const Wide<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  for (std::int64_t i = 0; i < size; i += lanes) sum = hn::Add(sum, term(hn::LoadU(d, row + i)));
  return sum_of(d, sum);
}

template <class Real>
HWY_INLINE Real largest(const Real* HWY_RESTRICT row, std::int64_t size) {
  const Wide<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto top = hn::LoadU(d, row);
  for (std::int64_t i = lanes; i < size; i += lanes) top = hn::Max(top, hn::LoadU(d, row + i));
  return largest_of(d, top);
}

template <class Real, class Map>
HWY_INLINE void map_row(Real* HWY_RESTRICT row, std::int64_t size, const Map& map) {
  const Wide<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < size; i += lanes) hn::StoreU(map(hn::LoadU(d, row + i)), d, row + i);
}

/// gradient <- map(weights, gradient).
template <class Real, class Map>
HWY_INLINE void map_gradient(const Real* HWY_RESTRICT weights, Real* HWY_RESTRICT gradient,
                             std::int64_t size, const Map& map) {
  const Wide<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < size; i += lanes) {
    hn::StoreU(map(hn::LoadU(d, weights + i), hn::LoadU(d, gradient + i)), d, gradient + i);
  }
}

/// Sum over a row of term(weights, gradient).
template <class Real, class Term>
HWY_INLINE Real sum_over(const Real* HWY_RESTRICT weights, const Real* HWY_RESTRICT gradient,
                         std::int64_t size, const Term& term) {
  const Wide<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  for (std::int64_t i = 0; i < size; i += lanes) {
    sum = hn::Add(sum, term(hn::LoadU(d, weights + i), hn::LoadU(d, gradient + i)));
  }
  return sum_of(d, sum);
}

template <class Real>
HWY_INLINE Real product_sum(const Real* weights, const Real* gradient, std::int64_t size) {
  return sum_over(weights, gradient, size, [](auto p, auto g) { return hn::Mul(p, g); });
}

template <class Real>
HWY_INLINE void scale(Real* row, std::int64_t size, Real factor) {
  const auto factors = hn::Set(Wide<Real>(), factor);
  map_row(row, size, [&](auto x) { return hn::Mul(x, factors); });
}

/// row <- e^(row - top). @return the sum.
template <class Real>
HWY_INLINE Real exponentials(Real* HWY_RESTRICT row, std::int64_t size, Real top) {
  const Wide<Real> d;
  const auto shift = hn::Set(d, top);
  auto sum = hn::Zero(d);
  map_row(row, size, [&](auto x) {
    const auto e = exponential(d, hn::Sub(x, shift));
    sum = hn::Add(sum, e);
    return e;
  });
  return sum_of(d, sum);
}

template <class Real>
Real softmax_forward(Real* row, std::int64_t /*visible*/, std::int64_t size,
                     std::int64_t /*tokens*/) {
  scale(row, size, 1 / exponentials(row, size, largest(row, size)));
  return 0;
}

template <class Real>
void softmax_backward(const Real* weights, Real* gradient, std::int64_t size, Real /*statistic*/) {
  const auto mean = hn::Set(Wide<Real>(), product_sum(weights, gradient, size));
  map_gradient(weights, gradient, size,
               [&](auto p, auto g) { return hn::Mul(p, hn::Sub(g, mean)); });
}

template <class Real>
Real softmax1_forward(Real* row, std::int64_t /*visible*/, std::int64_t size,
                      std::int64_t /*tokens*/) {
  const auto top = std::max(largest(row, size), Real{0});
  const auto one = hn::GetLane(exponential(Wide<Real>(), hn::Set(Wide<Real>(), -top)));
  scale(row, size, 1 / (exponentials(row, size, top) + one));
  return 0;
}

template <class Real>
Real softmax_forward_with_sink(Real* row, std::int64_t /*visible*/, std::int64_t size, Real sink) {
  const auto top = std::max(largest(row, size), sink);
  const auto extra = hn::GetLane(exponential(Wide<Real>(), hn::Set(Wide<Real>(), sink - top)));
  const Real factor = 1 / (exponentials(row, size, top) + extra);
  scale(row, size, factor);
  return factor * extra;
}

constexpr double kSmallestSum = 1e-8;

template <class Real>
Real normalise(Real* row, std::int64_t size) {
  const Real sum = sum_over(row, size, [](auto x) { return x; }) + static_cast<Real>(kSmallestSum);
  scale(row, size, 1 / sum);
  return sum;
}

template <class Real>
Real relu_forward(Real* row, std::int64_t /*visible*/, std::int64_t size, std::int64_t /*tokens*/) {
  const auto zero = hn::Zero(Wide<Real>());
  map_row(row, size, [&](auto x) { return hn::Max(zero, x); });  // in this order NaN stays
  return normalise(row, size);
}

template <class Real>
void relu_backward(const Real* weights, Real* gradient, std::int64_t size, Real sum) {
  const Wide<Real> d;
  const auto mean = hn::Set(d, product_sum(weights, gradient, size));
  const auto factor = hn::Set(d, 1 / sum);
  map_gradient(weights, gradient, size, [&](auto p, auto g) {
    return hn::IfThenElseZero(hn::Gt(p, hn::Zero(d)), hn::Mul(hn::Sub(g, mean), factor));
  });
}

template <class Real>
Real sigmoid_forward(Real* row, std::int64_t /*visible*/, std::int64_t size,
                     std::int64_t /*tokens*/) {
  map_row(row, size, [](auto x) { return logistic(Wide<Real>(), x); });
  return normalise(row, size);
}

template <class Real>
void sigmoid_backward(const Real* weights, Real* gradient, std::int64_t size, Real sum) {
  const Wide<Real> d;
  const auto mean = hn::Set(d, product_sum(weights, gradient, size));
  const auto sums = hn::Set(d, sum);
  map_gradient(weights, gradient, size, [&](auto p, auto g) {
    // o (1 - o) / sum with o = p sum.
    return hn::Mul(hn::NegMulAdd(hn::Mul(p, sums), p, p), hn::Sub(g, mean));
  });
}

template <class Real>
Real sparsemax_forward(Real* row, std::int64_t /*visible*/, std::int64_t size,
                       std::int64_t /*tokens*/) {
  const Wide<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto top = hn::Set(d, largest(row, size));
  map_row(row, size, [&](auto x) { return hn::Sub(x, top); });
  // The largest is 0 now: at -1 it alone fills the sum, so the threshold is not to the left of it.
  // From there the supports shrink; one that does not is the last, or rounding would go on for
  // ever.
  Real threshold = -1;
  for (auto count = static_cast<std::size_t>(size) + 1;;) {
    const auto thresholds = hn::Set(d, threshold);
    std::size_t larger = 0;
    auto sum = hn::Zero(d);
    for (std::int64_t i = 0; i < size; i += lanes) {
      const auto x = hn::LoadU(d, row + i);
      const auto above = hn::Gt(x, thresholds);
      larger += hn::CountTrue(d, above);
      sum = hn::Add(sum, hn::IfThenElseZero(above, x));
    }
    threshold = (sum_of(d, sum) - 1) / static_cast<Real>(larger);
    if (larger >= count) break;
    count = larger;
  }
  const auto thresholds = hn::Set(d, threshold);
  map_row(row, size, [&](auto x) { return hn::Max(hn::Zero(d), hn::Sub(x, thresholds)); });
  return 0;
}

template <class Real>
void sparsemax_backward(const Real* weights, Real* gradient, std::int64_t size,
                        Real /*statistic*/) {
  const Wide<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::size_t count = 0;
  for (std::int64_t i = 0; i < size; i += lanes) {
    count += hn::CountTrue(d, hn::Gt(hn::LoadU(d, weights + i), hn::Zero(d)));
  }
  const Real sum = sum_over(weights, gradient, size, [&](auto p, auto g) {
    return hn::IfThenElseZero(hn::Gt(p, hn::Zero(d)), g);
  });
  const auto mean = hn::Set(d, sum / static_cast<Real>(count));
  map_gradient(weights, gradient, size, [&](auto p, auto g) {
    return hn::IfThenElseZero(hn::Gt(p, hn::Zero(d)), hn::Sub(g, mean));
  });
}

template <class Real>
Real entmax15_forward(Real* row, std::int64_t /*visible*/, std::int64_t size,
                      std::int64_t /*tokens*/) {
  const Wide<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto top = hn::Set(d, largest(row, size));
  map_row(row, size,
          [&](auto x) { return hn::Mul(hn::Sub(x, top), hn::Set(d, static_cast<Real>(0.5))); });
  const auto above = [&](auto x, auto threshold) {
    return hn::Max(hn::Zero(d), hn::Sub(x, threshold));
  };
  // As for sparsemax, -1 is not to the right of the threshold. From the left the excess only falls;
  // rounding ends it.
  Real threshold = -1;
  constexpr int kMostSteps = 60;
  for (int step = 0; step < kMostSteps; ++step) {
    const auto thresholds = hn::Set(d, threshold);
    auto sum = hn::Zero(d);
    auto squares = hn::Zero(d);
    for (std::int64_t i = 0; i < size; i += lanes) {
      const auto x = above(hn::LoadU(d, row + i), thresholds);
      sum = hn::Add(sum, x);
      squares = hn::MulAdd(x, x, squares);
    }
    const Real excess = sum_of(d, squares) - 1;
    const Real next = threshold + excess / (2 * sum_of(d, sum));
    if (!(excess > 2 * std::numeric_limits<Real>::epsilon() && next > threshold)) break;
    threshold = next;
  }
  const auto thresholds = hn::Set(d, threshold);
  map_row(row, size, [&](auto x) {
    const auto root = above(x, thresholds);
    return hn::Mul(root, root);
  });
  return 0;
}

template <class Real>
void entmax15_backward(const Real* weights, Real* gradient, std::int64_t size, Real /*statistic*/) {
  const Wide<Real> d;
  const Real roots = sum_over(weights, size, [](auto p) { return hn::Sqrt(p); });
  const Real products =
      sum_over(weights, gradient, size, [](auto p, auto g) { return hn::Mul(hn::Sqrt(p), g); });
  const auto mean = hn::Set(d, products / roots);
  map_gradient(weights, gradient, size,
               [&](auto p, auto g) { return hn::Mul(hn::Sqrt(p), hn::Sub(g, mean)); });
}

/// Scores as integers of the same order.
template <class D>
HWY_INLINE Vector<hn::RebindToSigned<D>> ordered(D d, Vector<D> x) {
  const hn::RebindToSigned<D> integers;
  // -0 and 0 are equal.
  const auto bits = hn::BitCast(integers, hn::Add(x, hn::Zero(d)));
  const auto flipped =
      hn::Xor(bits, hn::Set(integers, std::numeric_limits<hn::TFromD<decltype(integers)>>::max()));
  return hn::IfThenElse(hn::Lt(bits, hn::Zero(integers)), flipped, bits);
}

/// Softmax over the `count` largest of the row.
template <class Real>
void softmax_over_largest(Real* row, std::int64_t visible, std::int64_t size, std::int64_t count) {
  const Wide<Real> d;
  const hn::RebindToSigned<Wide<Real>> integers;
  using Integer = hn::TFromD<decltype(integers)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Real top = largest(row, size);
  if (count < visible) {
    const auto num_above = [&](Integer threshold) {
      const auto thresholds = hn::Set(integers, threshold);
      std::size_t found = 0;
      for (std::int64_t i = 0; i < size; i += lanes) {
        found += hn::CountTrue(integers, hn::Gt(ordered(d, hn::LoadU(d, row + i)), thresholds));
      }
      return static_cast<std::int64_t>(found);
    };
    // The smallest threshold that at most `count` scores exceed: it is one of the scores, unless
    // exactly `count` are above a gap, where the search may stop at once.
    Integer low = std::numeric_limits<Integer>::min();        // more exceed it
    Integer high = hn::GetLane(ordered(d, hn::Set(d, top)));  // none exceeds it
    std::int64_t above = 0;
    while (above != count && low + 1 < high) {
      // Without overflow: the mean of the two, rounded down.
      const auto middle = static_cast<Integer>((low & high) + ((low ^ high) >> 1));
      const auto found = num_above(middle);
      if (found > count) {
        low = middle;
      } else {
        high = middle;
        above = found;
      }
    }
    std::int64_t equal = count - above;  // how many of those at the threshold are kept, too
    const auto thresholds = hn::Set(integers, high);
    const auto hidden = hn::Set(d, -std::numeric_limits<Real>::infinity());
    for (std::int64_t i = 0; i < size; i += lanes) {
      const auto x = hn::LoadU(d, row + i);
      const auto key = ordered(d, x);
      auto keep = hn::Gt(key, thresholds);
      const auto ties = hn::Eq(key, thresholds);
      if (equal > 0 && !hn::AllFalse(integers, ties)) {
        HWY_ALIGN Integer marks[hn::MaxLanes(integers)];
        hn::Store(hn::IfThenElseZero(ties, hn::Set(integers, 1)), integers, marks);
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
          if (marks[lane] != 0 && --equal < 0) marks[lane] = 0;
        }
        keep = hn::Or(keep, hn::Gt(hn::Load(integers, marks), hn::Zero(integers)));
      }
      hn::StoreU(hn::IfThenElse(hn::RebindMask(d, keep), x, hidden), d, row + i);
    }
  }
  scale(row, size, 1 / exponentials(row, size, top));
}

template <class Real>
Real top_k_forward(Real* row, std::int64_t visible, std::int64_t size, std::int64_t /*tokens*/) {
  softmax_over_largest(row, visible, size, (visible + 3) / 4);
  return 0;
}

template <class Real>
Real topk_quarter_forward(Real* row, std::int64_t visible, std::int64_t size, std::int64_t tokens) {
  softmax_over_largest(row, visible, size, std::max<std::int64_t>(1, tokens / 4));
  return 0;
}

template <class Real>
Real sigmoid_attn_forward(Real* row, std::int64_t visible, std::int64_t size,
                          std::int64_t /*tokens*/) {
  const Wide<Real> d;
  const auto shift = hn::Set(d, std::log(static_cast<Real>(visible)));
  map_row(row, size, [&](auto x) { return logistic(d, hn::Sub(x, shift)); });
  return 0;
}

template <class Real>
void sigmoid_attn_backward(const Real* weights, Real* gradient, std::int64_t size,
                           Real /*statistic*/) {
  map_gradient(weights, gradient, size,
               [](auto p, auto g) { return hn::Mul(hn::NegMulAdd(p, p, p), g); });
}

template <class Real>
Real relu_n_forward(Real* row, std::int64_t visible, std::int64_t size, std::int64_t /*tokens*/) {
  const Wide<Real> d;
  const auto count = static_cast<Real>(visible);
  const auto factor = hn::Set(d, 1 / count);
  map_row(row, size, [&](auto x) {
    return hn::Mul(hn::Max(hn::Zero(d), x), factor);  // in this order NaN stays
  });
  return count;
}

template <class Real>
void relu_n_backward(const Real* weights, Real* gradient, std::int64_t size, Real count) {
  const Wide<Real> d;
  const auto factor = hn::Set(d, 1 / count);
  map_gradient(weights, gradient, size, [&](auto p, auto g) {
    return hn::IfThenElseZero(hn::Gt(p, hn::Zero(d)), hn::Mul(g, factor));
  });
}

#define NAS_ROW_NORMALIZATION(name, forward, backward)                                   \
  RowNormalization name() {                                                              \
    return {{&forward<float>, &backward<float>}, {&forward<double>, &backward<double>}}; \
  }
NAS_ROW_NORMALIZATION(softmax_rows, softmax_forward, softmax_backward)
NAS_ROW_NORMALIZATION(softmax1_rows, softmax1_forward, softmax_backward)
NAS_ROW_NORMALIZATION(relu_rows, relu_forward, relu_backward)
NAS_ROW_NORMALIZATION(sigmoid_rows, sigmoid_forward, sigmoid_backward)
NAS_ROW_NORMALIZATION(sparsemax_rows, sparsemax_forward, sparsemax_backward)
NAS_ROW_NORMALIZATION(entmax15_rows, entmax15_forward, entmax15_backward)
NAS_ROW_NORMALIZATION(top_k_rows, top_k_forward, softmax_backward)
NAS_ROW_NORMALIZATION(topk_quarter_rows, topk_quarter_forward, softmax_backward)
NAS_ROW_NORMALIZATION(sigmoid_attn_rows, sigmoid_attn_forward, sigmoid_attn_backward)
NAS_ROW_NORMALIZATION(relu_n_rows, relu_n_forward, relu_n_backward)
#undef NAS_ROW_NORMALIZATION

template <class Real>
RowKernel<Real> sink_kernel() {
  return {&softmax_forward<Real>, &softmax_backward<Real>, &softmax_forward_with_sink<Real>};
}

RowNormalization sink_rows() { return {sink_kernel<float>(), sink_kernel<double>()}; }

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nas::kernels {

/// Says which one it is; only the functions below may.
class KnownNormalization {
 public:
  static RowNormalization of(RowNormalization rows, RowNormalization::Kind kind) {
    rows.kind_ = kind;
    return rows;
  }
};

#define NAS_ROW_NORMALIZATION(name, rows)                                                      \
  HWY_EXPORT(rows);                                                                            \
  RowNormalization name() {                                                                    \
    return KnownNormalization::of(HWY_DYNAMIC_DISPATCH(rows)(), RowNormalization::Kind::name); \
  }
NAS_ROW_NORMALIZATION(softmax, softmax_rows)
NAS_ROW_NORMALIZATION(softmax1, softmax1_rows)
NAS_ROW_NORMALIZATION(relu_norm, relu_rows)
NAS_ROW_NORMALIZATION(sigmoid_norm, sigmoid_rows)
NAS_ROW_NORMALIZATION(sparsemax, sparsemax_rows)
NAS_ROW_NORMALIZATION(entmax15, entmax15_rows)
NAS_ROW_NORMALIZATION(top_k, top_k_rows)
NAS_ROW_NORMALIZATION(topk_quarter, topk_quarter_rows)
NAS_ROW_NORMALIZATION(sink, sink_rows)
NAS_ROW_NORMALIZATION(sigmoid_attn, sigmoid_attn_rows)
NAS_ROW_NORMALIZATION(relu_n, relu_n_rows)
#undef NAS_ROW_NORMALIZATION

}  // namespace nas::kernels
#endif
