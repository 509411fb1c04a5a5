#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/normalization.cpp"
#include <concepts>
#include <limits>

#include <hwy/foreach_target.h>

#include "kernels/normalization.hpp"
#include "kernels/vector_math-inl.h"

// clang-format off
#define NAS_ROW_NORMALIZATIONS(Each)                                                            \
  Each(softmax, Softmax) Each(softmax1, Softmax1) Each(relu_norm, ReluNorm)                     \
  Each(sigmoid_norm, SigmoidNorm) Each(sparsemax, Sparsemax) Each(entmax15, Entmax15)           \
  Each(top_k, TopK) Each(topk_quarter, TopkQuarter) Each(sink, Sink)                            \
  Each(sigmoid_attn, SigmoidAttention) Each(relu_n, ReluN)
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

// What row_normalization-inl.h asks for.

template <class T>
struct Truth {
  hn::Mask<Wide<T>> mask;

  friend HWY_INLINE int num_true(Truth x) {
    return static_cast<int>(hn::CountTrue(Wide<T>(), x.mask));
  }
};

/// A vector as a number.
template <class T>
struct Lanes {
  using D = Wide<T>;
  using Order = Lanes<hwy::MakeSigned<T>>;
  Vector<D> v;

  HWY_INLINE Lanes(Vector<D> lanes) : v(lanes) {}
  template <std::convertible_to<T> Number>
  HWY_INLINE Lanes(Number x) : v(hn::Set(D(), static_cast<T>(x))) {}

  friend HWY_INLINE Lanes operator+(Lanes x, Lanes y) { return hn::Add(x.v, y.v); }
  friend HWY_INLINE Lanes operator-(Lanes x, Lanes y) { return hn::Sub(x.v, y.v); }
  friend HWY_INLINE Lanes operator*(Lanes x, Lanes y) { return hn::Mul(x.v, y.v); }
  friend HWY_INLINE Truth<T> operator>(Lanes x, Lanes y) { return {hn::Gt(x.v, y.v)}; }

  friend HWY_INLINE Lanes exponential(Lanes x) { return exponential(D(), x.v); }
  friend HWY_INLINE Lanes logistic(Lanes x) { return logistic(D(), x.v); }
  friend HWY_INLINE Lanes root(Lanes x) { return hn::Sqrt(x.v); }
  friend HWY_INLINE Lanes positive_part(Lanes x) { return at_least(hn::Zero(D()), x.v); }
  friend HWY_INLINE Lanes plus_product(Lanes z, Lanes x, Lanes y) {
    return hn::MulAdd(x.v, y.v, z.v);
  }
  friend HWY_INLINE Lanes minus_product(Lanes z, Lanes x, Lanes y) {
    return hn::NegMulAdd(x.v, y.v, z.v);
  }
  friend HWY_INLINE Lanes where(Truth<T> truth, Lanes x) {
    return hn::IfThenElseZero(truth.mask, x.v);
  }
  friend HWY_INLINE Order order(Lanes x) {
    const typename Order::D d;
    const auto bits = hn::BitCast(d, (x + 0).v);
    const auto flipped = hn::Xor(bits, hn::Set(d, hwy::LimitsMax<hn::TFromD<decltype(d)>>()));
    return hn::IfThenElse(hn::Lt(bits, hn::Zero(d)), flipped, bits);
  }
  friend HWY_INLINE T total(Lanes x) { return sum_of(D(), x.v); }
};

template <std::floating_point T>
HWY_INLINE T exponential(T x) {
  return hn::GetLane(exponential(Lanes<T>(x)).v);
}
template <std::floating_point T>
HWY_INLINE auto order(T x) {
  return hn::GetLane(order(Lanes<T>(x)).v);
}

/// `size` scores, a multiple of kPadding; the hidden ones are -inf.
template <class T>
struct ScoreRow {
  using Real = T;
  using Number = Lanes<T>;
  T* HWY_RESTRICT scores;
  std::int64_t visible;
  std::int64_t size;

  static constexpr Wide<T> d{};
  static constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));

  template <class Use>
  HWY_INLINE void each(const Use& use) const {
    for (std::int64_t i = 0; i < size; i += kLanes) use(Number(hn::LoadU(d, scores + i)));
  }
  template <class Map>
  HWY_INLINE void map(const Map& map) const {
    for (std::int64_t i = 0; i < size; i += kLanes) {
      hn::StoreU(map(Number(hn::LoadU(d, scores + i))).v, d, scores + i);
    }
  }
  [[nodiscard]] HWY_INLINE T largest() const {
    auto top = hn::LoadU(d, scores);
    for (std::int64_t i = kLanes; i < size; i += kLanes) {
      top = hn::Max(top, hn::LoadU(d, scores + i));
    }
    return largest_of(d, top);
  }
  template <class Integer>
  HWY_INLINE void keep(Integer threshold, std::int64_t equal) const {
    constexpr Wide<Integer> integers;
    const auto hidden = hn::Set(d, -std::numeric_limits<T>::infinity());
    map([&](auto x) {
      const auto key = order(x);
      auto kept = (key > threshold).mask;
      const auto ties = hn::Eq(key.v, hn::Set(integers, threshold));
      if (equal > 0 && !hn::AllFalse(integers, ties)) {
        HWY_ALIGN Integer marks[hn::MaxLanes(integers)];
        hn::Store(hn::IfThenElseZero(ties, hn::Set(integers, 1)), integers, marks);
        for (Integer& mark : marks) {
          if (mark != 0 && --equal < 0) mark = 0;
        }
        kept = hn::Or(kept, hn::Gt(hn::Load(integers, marks), hn::Zero(integers)));
      }
      return Number(hn::IfThenElse(hn::RebindMask(d, kept), x.v, hidden));
    });
  }
};

/// `size` weights, and gradients w.r.t. them.
template <class T>
struct GradientRow {
  using Real = T;
  using Number = Lanes<T>;
  const T* HWY_RESTRICT weights;
  T* HWY_RESTRICT gradient;
  std::int64_t size;

  static constexpr Wide<T> d{};
  static constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));

  template <class Use>
  HWY_INLINE void each(const Use& use) const {
    for (std::int64_t i = 0; i < size; i += kLanes) {
      use(Number(hn::LoadU(d, weights + i)), Number(hn::LoadU(d, gradient + i)));
    }
  }
  template <class Map>
  HWY_INLINE void map(const Map& map) const {
    for (std::int64_t i = 0; i < size; i += kLanes) {
      const Number p = hn::LoadU(d, weights + i);
      hn::StoreU(map(p, Number(hn::LoadU(d, gradient + i))).v, d, gradient + i);
    }
  }
};

#define NAS_ROW HWY_INLINE
#include "kernels/row_normalization-inl.h"
#undef NAS_ROW

template <class Of, class T>
T forward(T* row, std::int64_t visible, std::int64_t size, std::int64_t tokens) {
  return Of::forward(ScoreRow<T>{row, visible, size}, tokens);
}

template <class Of, class T>
T forward_with_sink(T* row, std::int64_t visible, std::int64_t size, T sink) {
  return Of::forward_with_sink(ScoreRow<T>{row, visible, size}, sink);
}

template <class Of, class T>
void backward(const T* weights, T* gradient, std::int64_t size, T statistic) {
  Of::backward(GradientRow<T>{weights, gradient, size}, statistic);
}

template <class Of, class T>
RowKernel<T> kernel() {
  RowKernel<T> made{&forward<Of, T>, &backward<Of, T>};
  if constexpr (std::same_as<Of, Sink>) made.forward_with_sink = &forward_with_sink<Of, T>;
  return made;
}

#define NAS_ROW_NORMALIZATION(name, Of) \
  RowNormalization name##_rows() { return {kernel<Of, float>(), kernel<Of, double>()}; }
NAS_ROW_NORMALIZATIONS(NAS_ROW_NORMALIZATION)
#undef NAS_ROW_NORMALIZATION

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

#define NAS_ROW_NORMALIZATION(name, Of)                                \
  HWY_EXPORT(name##_rows);                                             \
  RowNormalization name() {                                            \
    return KnownNormalization::of(HWY_DYNAMIC_DISPATCH(name##_rows)(), \
                                  RowNormalization::Kind::name);       \
  }
NAS_ROW_NORMALIZATIONS(NAS_ROW_NORMALIZATION)
#undef NAS_ROW_NORMALIZATION

}  // namespace nas::kernels
#endif
