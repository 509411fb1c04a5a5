#include "kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/multiply_add.cpp"
#include <cstddef>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "bench/multiply_add.hpp"

HWY_BEFORE_NAMESPACE();
namespace nas {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

double all_rounds(std::int64_t rounds) {
  constexpr std::size_t kChains = 12;  // two units, each with a result after four or five cycles
  const hn::ScalableTag<float> d;
  const auto half = hn::Set(d, 0.5F);
  hn::Vec<decltype(d)> chains[kChains];
  // x / 2 + 1 / 2 comes to 1 and stays there; from different values, or one chain would do for all.
  for (std::size_t i = 0; i < kChains; ++i) chains[i] = hn::Set(d, static_cast<float>(i));
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (auto& chain : chains) chain = hn::MulAdd(chain, half, half);
  }
  auto sum = hn::Zero(d);
  for (const auto& chain : chains) sum = hn::Add(sum, chain);
  const bool done = hn::GetLane(sum) > 0.0F;  // which the compiler cannot know
  return done ? 2.0 * static_cast<double>(rounds) * static_cast<double>(kChains * hn::Lanes(d))
              : 0.0;
}

}  // namespace HWY_NAMESPACE
}  // namespace nas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nas {

HWY_EXPORT(all_rounds);

double multiply_add(std::int64_t rounds) { return HWY_DYNAMIC_DISPATCH(all_rounds)(rounds); }

}  // namespace nas
#endif
