#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cross_entropy.cpp"
#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <type_traits>

#include <hwy/foreach_target.h>

#include "kernels/cross_entropy.hpp"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

/// Numbers as they lie in memory, and as they are computed with.
template <class Stored>
struct Format {
  using Real = Stored;
  static HWY_INLINE Vector<Wide<Real>> load(const Stored* from) {
    return hn::LoadU(Wide<Real>(), from);
  }
  static HWY_INLINE void store(Vector<Wide<Real>> x, Stored* to) {
    hn::StoreU(x, Wide<Real>(), to);
  }
  static Real load_one(const Stored* from) { return *from; }
  static void store_one(Real x, Stored* to) { *to = x; }
};

template <>
struct Format<Bfloat16> {
  using Real = float;
  using D = Wide<float>;
  using D16 = hn::Rebind<std::uint16_t, D>;
  using D32 = hn::Rebind<std::uint32_t, D>;

  static const std::uint16_t* bits(const Bfloat16* x) {
    return reinterpret_cast<const std::uint16_t*>(x);
  }
  static HWY_INLINE Vector<D> load(const Bfloat16* from) {
    const auto wide = hn::PromoteTo(D32(), hn::LoadU(D16(), bits(from)));
    return hn::BitCast(D(), hn::ShiftLeft<16>(wide));
  }
  static HWY_INLINE void store(Vector<D> x, Bfloat16* to) {
    // To the nearest, ties to even; finite numbers only.
    const auto all = hn::BitCast(D32(), x);
    const auto odd = hn::And(hn::ShiftRight<16>(all), hn::Set(D32(), 1U));
    const auto half = hn::Add(odd, hn::Set(D32(), 0x7fffU));
    const auto high = hn::ShiftRight<16>(hn::Add(all, half));
    const hn::RebindToSigned<D32> integers;
    hn::StoreU(hn::DemoteTo(D16(), hn::BitCast(integers, high)), D16(),
               reinterpret_cast<std::uint16_t*>(to));
  }
  static float load_one(const Bfloat16* from) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(*bits(from)) << 16U);
  }
  static void store_one(float x, Bfloat16* to) {
    const auto all = std::bit_cast<std::uint32_t>(x);
    *to = static_cast<Bfloat16>((all + 0x7fffU + ((all >> 16U) & 1U)) >> 16U);
  }
};

/// Calls run(i) for the first element of each whole vector of [0, size). @return where they end.
template <class Real, class Run>
HWY_INLINE std::int64_t for_each_vector(std::int64_t size, const Run& run) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Wide<Real>()));
  std::int64_t i = 0;
  for (; i + 4 * lanes <= size; i += 4 * lanes) {
    run(i);
    run(i + lanes);
    run(i + 2 * lanes);
    run(i + 3 * lanes);
  }
  for (; i + lanes <= size; i += lanes) run(i);
  return i;
}

template <class Stored, class Real = typename Format<Stored>::Real>
Real largest(const Stored* HWY_RESTRICT x, std::int64_t size) {
  const Wide<Real> d;
  Real top = Format<Stored>::load_one(x);
  auto tops = hn::Set(d, top);
  const auto end = for_each_vector<Real>(
      size, [&](std::int64_t i) { tops = hn::Max(tops, Format<Stored>::load(x + i)); });
  top = largest_of(d, tops);
  for (std::int64_t i = end; i < size; ++i) top = std::max(top, Format<Stored>::load_one(x + i));
  return top;
}

/// Sum of e^(x - top).
template <class Stored, class Real = typename Format<Stored>::Real>
Real sum_of_exponentials(const Stored* HWY_RESTRICT x, std::int64_t size, Real top) {
  const Wide<Real> d;
  const auto shift = hn::Set(d, top);
  auto sums = hn::Zero(d);
  const auto end = for_each_vector<Real>(size, [&](std::int64_t i) {
    sums = hn::Add(sums, exponential(d, hn::Sub(Format<Stored>::load(x + i), shift)));
  });
  Real sum = sum_of(d, sums);
  for (std::int64_t i = end; i < size; ++i) sum += std::exp(Format<Stored>::load_one(x + i) - top);
  return sum;
}

/// log(sum) + top - x: adding the logarithm to the largest would round it to the logits' precision.
template <class Real>
double nll_of(Real sum, Real top, Real x) {
  return std::log(static_cast<double>(sum)) + (static_cast<double>(top) - static_cast<double>(x));
}

template <class Stored>
CrossEntropy score(const Stored* x, std::int64_t size, std::int64_t target) {
  if (target < 0) return {};
  const auto top = largest(x, size);
  const auto of_target = Format<Stored>::load_one(x + target);
  return {nll_of(sum_of_exponentials(x, size, top), top, of_target),
          of_target == top && std::none_of(x, x + target, [&](const Stored& earlier) {
            return Format<Stored>::load_one(&earlier) == top;
          })};
}

template <class Stored>
double gradient(Stored* HWY_RESTRICT x, std::int64_t size, std::int64_t target, double weight) {
  using Real = typename Format<Stored>::Real;
  const Wide<Real> d;
  if (target < 0) {
    std::fill_n(x, size, Stored{});
    return 0.0;
  }
  const auto top = largest(x, size);
  const auto of_target = Format<Stored>::load_one(x + target);
  const auto shift = hn::Set(d, top);
  Real sum = 0;
  if constexpr (std::is_same_v<Stored, Real>) {
    auto sums = hn::Zero(d);
    const auto end = for_each_vector<Real>(size, [&](std::int64_t i) {
      const auto e = exponential(d, hn::Sub(Format<Stored>::load(x + i), shift));
      Format<Stored>::store(e, x + i);
      sums = hn::Add(sums, e);
    });
    sum = sum_of(d, sums);
    for (std::int64_t i = end; i < size; ++i) sum += x[i] = std::exp(x[i] - top);
  } else {  // rounding twice would cost more than computing twice
    sum = sum_of_exponentials(x, size, top);
  }
  const auto factor = static_cast<Real>(weight) / sum;
  const auto factors = hn::Set(d, factor);
  const auto end = for_each_vector<Real>(size, [&](std::int64_t i) {
    auto e = Format<Stored>::load(x + i);
    if constexpr (!std::is_same_v<Stored, Real>) e = exponential(d, hn::Sub(e, shift));
    Format<Stored>::store(hn::Mul(factors, e), x + i);
  });
  for (std::int64_t i = end; i < size; ++i) {
    auto e = Format<Stored>::load_one(x + i);
    if constexpr (!std::is_same_v<Stored, Real>) e = std::exp(e - top);
    Format<Stored>::store_one(factor * e, x + i);
  }
  const auto kept = static_cast<Real>(factor * std::exp(of_target - top));
  Format<Stored>::store_one(kept - static_cast<Real>(weight), x + target);
  return nll_of(sum, top, of_target);
}

template <class Stored>
double towards(Stored* HWY_RESTRICT z, const Stored* HWY_RESTRICT told, std::int64_t size,
               double weight) {
  using Real = typename Format<Stored>::Real;
  const Wide<Real> d;
  const auto top = largest(z, size), told_top = largest(told, size);
  const auto sum = sum_of_exponentials(z, size, top);
  const auto told_sum = sum_of_exponentials(told, size, told_top);
  // Of equal rows the ratio is 1, and their difference nothing.
  const Real factor = static_cast<Real>(weight) / sum, ratio = sum / told_sum;
  const auto shift = hn::Set(d, top), told_shift = hn::Set(d, told_top);
  const auto factors = hn::Set(d, factor), ratios = hn::Set(d, ratio);
  auto products = hn::Zero(d);
  const auto end = for_each_vector<Real>(size, [&](std::int64_t i) {
    const auto x = hn::Sub(Format<Stored>::load(z + i), shift);
    const auto y = hn::Sub(Format<Stored>::load(told + i), told_shift);
    const auto p = exponential(d, y);
    products = hn::MulAdd(p, hn::Sub(y, x), products);
    Format<Stored>::store(hn::Mul(factors, hn::NegMulAdd(ratios, p, exponential(d, x))), z + i);
  });
  auto product = static_cast<double>(sum_of(d, products));
  for (std::int64_t i = end; i < size; ++i) {
    const Real x = Format<Stored>::load_one(z + i) - top;
    const Real y = Format<Stored>::load_one(told + i) - told_top;
    const Real p = std::exp(y);
    product += static_cast<double>(p * (y - x));
    Format<Stored>::store_one(factor * (std::exp(x) - ratio * p), z + i);
  }
  return product / static_cast<double>(told_sum) +
         std::log(static_cast<double>(sum) / static_cast<double>(told_sum));
}

void read_divergence(const float* HWY_RESTRICT z, const float* HWY_RESTRICT log_p,
                     std::int64_t first, std::int64_t size, float shift, Divergence& sums) {
  const Wide<float> d;
  const float top = largest(z, size);
  if (!(top <= sums.top)) {
    sums.exponentials *= std::exp(sums.top - static_cast<double>(top));
    sums.top = top;
    sums.likeliest = first + (std::find(z, z + size, top) - z);
  }
  const auto shifted = hn::Set(d, shift);
  auto product = hn::Zero(d), mass = hn::Zero(d);
  const auto end = for_each_vector<float>(size, [&](std::int64_t i) {
    const auto log = hn::LoadU(d, log_p + i);
    const auto p = exponential(d, log);
    mass = hn::Add(mass, p);
    product = hn::MulAdd(p, hn::Sub(log, hn::Sub(hn::LoadU(d, z + i), shifted)), product);
  });
  sums.mass += static_cast<double>(sum_of(d, mass));
  sums.product += static_cast<double>(sum_of(d, product));
  for (std::int64_t i = end; i < size; ++i) {
    const double p = std::exp(static_cast<double>(log_p[i]));
    sums.mass += p;
    sums.product += p * static_cast<double>(log_p[i] - (z[i] - shift));
  }
  sums.exponentials +=
      static_cast<double>(sum_of_exponentials(z, size, static_cast<float>(sums.top)));
}

static auto scores() { return std::tuple(&score<float>, &score<double>, &score<Bfloat16>); }
static auto gradients() {
  return std::tuple(&gradient<float>, &gradient<double>, &gradient<Bfloat16>);
}
static auto divergence_gradients() {
  return std::tuple(&towards<float>, &towards<double>, &towards<Bfloat16>);
}

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nas::kernels {

HWY_EXPORT(scores);
HWY_EXPORT(gradients);
HWY_EXPORT(divergence_gradients);
HWY_EXPORT(read_divergence);

void add_divergence(const float* z, const float* log_p, std::int64_t first, std::int64_t size,
                    float shift, Divergence& sums) {
  HWY_DYNAMIC_DISPATCH(read_divergence)(z, log_p, first, size, shift, sums);
}

template <class Stored>
CrossEntropy cross_entropy(const Stored* logits, std::int64_t size, std::int64_t target) {
  return NAS_CALL(scores, cross_entropy<Stored>)(logits, size, target);
}

template <class Stored>
double cross_entropy_gradient(Stored* logits, std::int64_t size, std::int64_t target,
                              double weight) {
  return NAS_CALL(gradients, cross_entropy_gradient<Stored>)(logits, size, target, weight);
}

template <class Stored>
double divergence_gradient(Stored* logits, const Stored* told, std::int64_t size, double weight) {
  return NAS_CALL(divergence_gradients, divergence_gradient<Stored>)(logits, told, size, weight);
}

NAS_INSTANTIATE(cross_entropy)
NAS_INSTANTIATE(cross_entropy_gradient)
NAS_INSTANTIATE(divergence_gradient)
template decltype(cross_entropy<Bfloat16>) cross_entropy<Bfloat16>;
template decltype(cross_entropy_gradient<Bfloat16>) cross_entropy_gradient<Bfloat16>;
template decltype(divergence_gradient<Bfloat16>) divergence_gradient<Bfloat16>;

}  // namespace nas::kernels
#endif
