#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/adamw.cpp"
#include <cmath>

#include <hwy/foreach_target.h>

#include "kernels/adamw.hpp"
#include "kernels/partial_vector-inl.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nas::kernels {
namespace HWY_NAMESPACE {

HWY_INLINE Vector<Wide<double>> as_double(Vector<Wide<double>> x) { return x; }
HWY_INLINE Vector<Wide<double>> as_double(Vector<hn::Rebind<float, Wide<double>>> x) {
  return hn::PromoteTo(Wide<double>(), x);
}

template <class Real>
double sum_of_all_squares(const Real* HWY_RESTRICT x, std::int64_t size) {
  const Wide<double> d;
  const hn::Rebind<Real, Wide<double>> as_stored;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto add_square = [](auto& sum, auto stored) {
    const auto value = as_double(stored);
    sum = hn::MulAdd(value, value, sum);
  };
  // Several sums at a time: each addition waits for the one before it.
  auto first = hn::Zero(d);
  auto second = hn::Zero(d);
  auto third = hn::Zero(d);
  auto fourth = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 4 * lanes <= size; i += 4 * lanes) {
    add_square(first, hn::LoadU(as_stored, x + i));
    add_square(second, hn::LoadU(as_stored, x + i + lanes));
    add_square(third, hn::LoadU(as_stored, x + i + 2 * lanes));
    add_square(fourth, hn::LoadU(as_stored, x + i + 3 * lanes));
  }
  for_each_part(as_stored, size - i,
                [&](std::int64_t j, auto part) { add_square(first, part.load(x + i + j)); });
  return sum_of(d, hn::Add(hn::Add(first, second), hn::Add(third, fourth)));
}

template <class Real>
void step_of_all(Real* HWY_RESTRICT parameter, const Real* HWY_RESTRICT gradient,
                 Real* HWY_RESTRICT first_moment, Real* HWY_RESTRICT second_moment,
                 std::int64_t size, const AdamWStep& step) {
  const Wide<Real> d;
  const auto all = [&](double x) { return hn::Set(d, static_cast<Real>(x)); };
  const auto kept = all(1.0 - step.learning_rate * step.weight_decay);
  const auto factor = all(step.gradient_factor);
  const auto beta1 = all(step.beta1);
  const auto beta2 = all(step.beta2);
  const auto rest1 = all(1.0 - step.beta1);
  const auto rest2 = all(1.0 - step.beta2);
  const auto rate = all(step.learning_rate / step.first_correction);
  const auto root_factor = all(1.0 / std::sqrt(step.second_correction));
  const auto epsilon = all(step.epsilon);
  for_each_part(d, size, [&](std::int64_t i, auto part) {
    const auto g = hn::Mul(factor, part.load(gradient + i));
    const auto m = hn::MulAdd(beta1, part.load(first_moment + i), hn::Mul(rest1, g));
    const auto v = hn::MulAdd(beta2, part.load(second_moment + i), hn::Mul(rest2, hn::Mul(g, g)));
    const auto root = hn::MulAdd(hn::Sqrt(v), root_factor, epsilon);
    const auto p = hn::Mul(kept, part.load(parameter + i));
    part.store(m, first_moment + i);
    part.store(v, second_moment + i);
    part.store(hn::NegMulAdd(rate, hn::Div(m, root), p), parameter + i);
  });
}

NAS_KERNEL(squares, sum_of_all_squares)
NAS_KERNEL(step, step_of_all)

}  // namespace HWY_NAMESPACE
}  // namespace nas::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nas::kernels {

HWY_EXPORT(squares);
HWY_EXPORT(step);

template <class Real>
double sum_of_squares(const Real* x, std::int64_t size) {
  return NAS_CALL(squares, sum_of_squares<Real>)(x, size);
}

template <class Real>
void adamw(Real* parameter, const Real* gradient, Real* first_moment, Real* second_moment,
           std::int64_t size, const AdamWStep& of) {
  NAS_CALL(step, adamw<Real>)(parameter, gradient, first_moment, second_moment, size, of);
}

NAS_INSTANTIATE(sum_of_squares)
NAS_INSTANTIATE(adamw)

}  // namespace nas::kernels
#endif
