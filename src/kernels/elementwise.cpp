#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise.cpp"
#include <algorithm>

#include <hwy/foreach_target.h>

#include "kernels/dropout-inl.h"
#include "kernels/elementwise.hpp"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

/// out[i] = map(in[i]..., factor): factor is what dropout multiplies by, 0 or its scale.
template <class Real, class Map, class... In>
HWY_INLINE void map_dropped(Real* out, std::int64_t first, std::int64_t size,
                            const Dropout& dropout, const Map& map, const In*... in) {
  const Wide<Real> d;
  const auto run = [&](std::int64_t i, std::int64_t n, Vector<Wide<Real>> factor) {
    if (n == static_cast<std::int64_t>(hn::Lanes(d))) {
      hn::StoreU(map(factor, hn::LoadU(d, in + i)...), d, out + i);
      return;
    }
    const auto load = [&](const Real* from) {
      HWY_ALIGN Real part[hn::MaxLanes(d)] = {};
      std::copy_n(from + i, n, part);
      return hn::Load(d, part);
    };
    HWY_ALIGN Real result[hn::MaxLanes(d)];
    hn::Store(map(factor, load(in)...), d, result);
    std::copy_n(result, n, out + i);
  };
  if (!dropout.drops()) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto one = hn::Set(d, Real{1});
    for (std::int64_t i = 0; i < size; i += lanes) run(i, std::min(lanes, size - i), one);
    return;
  }
  const auto scale = hn::Set(d, static_cast<Real>(dropout.scale));
  for_each_kept(d, dropout, first, size, [&](std::int64_t i, std::int64_t n, auto mask) {
    run(i, n, hn::IfThenElseZero(mask, scale));
  });
}

template <class Real>
void drop_all(const Real* in, Real* out, std::int64_t first, std::int64_t size,
              const Dropout& dropout) {
  map_dropped(
      out, first, size, dropout, [](auto factor, auto x) { return hn::Mul(factor, x); }, in);
}

template <class Real>
void add_all(const Real* in, const Real* residual, Real* out, std::int64_t first, std::int64_t size,
             const Dropout& dropout) {
  map_dropped(
      out, first, size, dropout,
      [](auto factor, auto x, auto h) { return hn::MulAdd(factor, x, h); }, in, residual);
}

template <class Real>
void gelu_all(const Real* in, Real* out, std::int64_t first, std::int64_t size,
              const Dropout& dropout) {
  map_dropped(
      out, first, size, dropout,
      [](auto factor, auto x) {
        return hn::Mul(hn::Mul(factor, x), normal(Wide<Real>(), x).distribution);
      },
      in);
}

template <class Real>
void gelu_gradient(const Real* in, const Real* gradient, Real* out, std::int64_t first,
                   std::int64_t size, const Dropout& dropout) {
  map_dropped(
      out, first, size, dropout,
      [](auto factor, auto x, auto g) {
        const auto at = normal(Wide<Real>(), x);
        return hn::Mul(hn::Mul(factor, g), hn::MulAdd(x, at.density, at.distribution));
      },
      in, gradient);
}

template <class Real>
void swiglu_all(const Real* gate, const Real* in, Real* out, std::int64_t first, std::int64_t size,
                const Dropout& dropout) {
  map_dropped(
      out, first, size, dropout,
      [](auto factor, auto g, auto x) {
        return hn::Mul(hn::Mul(factor, x), hn::Mul(g, logistic(Wide<Real>(), g)));
      },
      gate, in);
}

/// silu'(g) = s (1 + g (1 - s)), s = logistic(g).
template <class Real>
void swiglu_gradient(const Real* gate, const Real* in, const Real* gradient, Real* out,
                     std::int64_t first, std::int64_t size, const Dropout& dropout) {
  map_dropped(
      out, first, size, dropout,
      [](auto factor, auto g, auto x, auto by_out) {
        const auto one = hn::Set(Wide<Real>(), Real{1});
        const auto s = logistic(Wide<Real>(), g);
        const auto slope = hn::Mul(s, hn::MulAdd(g, hn::Sub(one, s), one));
        return hn::Mul(hn::Mul(factor, by_out), hn::Mul(x, slope));
      },
      gate, in, gradient);
}

// Dispatch takes functions, not templates.
#define NAS_MAP(name, all)                                                                    \
  void name##_in_float(const float* in, float* out, std::int64_t first, std::int64_t size,    \
                       const Dropout& dropout) {                                              \
    all(in, out, first, size, dropout);                                                       \
  }                                                                                           \
  void name##_in_double(const double* in, double* out, std::int64_t first, std::int64_t size, \
                        const Dropout& dropout) {                                             \
    all(in, out, first, size, dropout);                                                       \
  }
#define NAS_MAP_OF_TWO(name, all)                                                               \
  void name##_in_float(const float* in, const float* other, float* out, std::int64_t first,     \
                       std::int64_t size, const Dropout& dropout) {                             \
    all(in, other, out, first, size, dropout);                                                  \
  }                                                                                             \
  void name##_in_double(const double* in, const double* other, double* out, std::int64_t first, \
                        std::int64_t size, const Dropout& dropout) {                            \
    all(in, other, out, first, size, dropout);                                                  \
  }
#define NAS_MAP_OF_THREE(name, all)                                                              \
  void name##_in_float(const float* in, const float* other, const float* third, float* out,      \
                       std::int64_t first, std::int64_t size, const Dropout& dropout) {          \
    all(in, other, third, out, first, size, dropout);                                            \
  }                                                                                              \
  void name##_in_double(const double* in, const double* other, const double* third, double* out, \
                        std::int64_t first, std::int64_t size, const Dropout& dropout) {         \
    all(in, other, third, out, first, size, dropout);                                            \
  }
NAS_MAP(drop, drop_all)
NAS_MAP_OF_TWO(add, add_all)
NAS_MAP(gelu, gelu_all)
NAS_MAP_OF_TWO(gelu_backward, gelu_gradient)
NAS_MAP_OF_TWO(swiglu, swiglu_all)
NAS_MAP_OF_THREE(swiglu_backward, swiglu_gradient)
#undef NAS_MAP
#undef NAS_MAP_OF_TWO
#undef NAS_MAP_OF_THREE

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nas::kernels {

#define NAS_MAP(name, exported, Real, kernel)                                 \
  HWY_EXPORT(exported##_##kernel);                                            \
  void name(const Real* in, Real* out, std::int64_t first, std::int64_t size, \
            const Dropout& dropout) {                                         \
    HWY_DYNAMIC_DISPATCH(exported##_##kernel)(in, out, first, size, dropout); \
  }
#define NAS_MAP_OF_TWO(name, exported, Real, kernel)                                             \
  HWY_EXPORT(exported##_##kernel);                                                               \
  void name(const Real* in, const Real* other, Real* out, std::int64_t first, std::int64_t size, \
            const Dropout& dropout) {                                                            \
    HWY_DYNAMIC_DISPATCH(exported##_##kernel)(in, other, out, first, size, dropout);             \
  }
#define NAS_MAP_OF_THREE(name, exported, Real, kernel)                                           \
  HWY_EXPORT(exported##_##kernel);                                                               \
  void name(const Real* in, const Real* other, const Real* third, Real* out, std::int64_t first, \
            std::int64_t size, const Dropout& dropout) {                                         \
    HWY_DYNAMIC_DISPATCH(exported##_##kernel)(in, other, third, out, first, size, dropout);      \
  }
NAS_MAP(drop, drop, float, in_float)
NAS_MAP(drop, drop, double, in_double)
NAS_MAP_OF_TWO(add_dropped, add, float, in_float)
NAS_MAP_OF_TWO(add_dropped, add, double, in_double)
NAS_MAP(gelu, gelu, float, in_float)
NAS_MAP(gelu, gelu, double, in_double)
NAS_MAP_OF_TWO(gelu_backward, gelu_backward, float, in_float)
NAS_MAP_OF_TWO(gelu_backward, gelu_backward, double, in_double)
NAS_MAP_OF_TWO(swiglu, swiglu, float, in_float)
NAS_MAP_OF_TWO(swiglu, swiglu, double, in_double)
NAS_MAP_OF_THREE(swiglu_backward, swiglu_backward, float, in_float)
NAS_MAP_OF_THREE(swiglu_backward, swiglu_backward, double, in_double)
#undef NAS_MAP
#undef NAS_MAP_OF_TWO
#undef NAS_MAP_OF_THREE

}  // namespace nas::kernels
#endif
