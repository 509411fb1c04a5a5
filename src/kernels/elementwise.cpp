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
void map_all(Map map, const MapInputs<Real>& in, Real* out, std::int64_t first, std::int64_t size,
             const Dropout& dropout) {
  const Wide<Real> d;
  const auto run = [&](const auto& of, const auto*... inputs) {
    map_dropped(out, first, size, dropout, of, inputs...);
  };
  switch (map) {
    case Map::drop:
      return run([](auto factor, auto x) { return hn::Mul(factor, x); }, in[0]);
    case Map::add_dropped:
      return run([](auto factor, auto x, auto h) { return hn::MulAdd(factor, x, h); }, in[0],
                 in[1]);
    case Map::gelu:
      return run([d](auto factor,
                     auto x) { return hn::Mul(hn::Mul(factor, x), normal(d, x).distribution); },
                 in[0]);
    case Map::gelu_backward:
      return run(
          [d](auto factor, auto x, auto g) {
            const auto at = normal(d, x);
            return hn::Mul(hn::Mul(factor, g), hn::MulAdd(x, at.density, at.distribution));
          },
          in[0], in[1]);
    case Map::swiglu:
      return run([d](auto factor, auto g,
                     auto x) { return hn::Mul(hn::Mul(factor, x), hn::Mul(g, logistic(d, g))); },
                 in[0], in[1]);
    case Map::swiglu_backward:  // silu'(g) = s (1 + g (1 - s)), s = logistic(g)
      return run(
          [d](auto factor, auto g, auto x, auto by_out) {
            const auto one = hn::Set(d, Real{1});
            const auto s = logistic(d, g);
            const auto slope = hn::Mul(s, hn::MulAdd(g, hn::Sub(one, s), one));
            return hn::Mul(hn::Mul(factor, by_out), hn::Mul(x, slope));
          },
          in[0], in[1], in[2]);
  }
}

NAS_KERNEL(mapped, map_all)

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nas::kernels {

HWY_EXPORT(mapped);

template <class Real>
void map_elements(Map map, const MapInputs<Real>& in, Real* out, std::int64_t first,
                  std::int64_t size, const Dropout& dropout) {
  NAS_CALL(mapped, map_elements<Real>)(map, in, out, first, size, dropout);
}

NAS_INSTANTIATE(map_elements)

}  // namespace nas::kernels
#endif
