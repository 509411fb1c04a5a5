// Which instruction sets the kernels are compiled for; the best one that the processor has is
// chosen at run time. Included first by every .cpp of this folder.
//
// SSE2 (or what the compiler's flags allow), AVX2 and AVX-512 on x86-64, the usual one elsewhere.
// Those in between gain nothing here and would double the build. Vectors of a size that the
// compiler does not know (SVE, RISC-V) cannot be kept in arrays, as the products do.
#pragma once

#include <utility>

#ifndef NAS_DISABLED_TARGETS  // further ones, by a build that has to be short
#define NAS_DISABLED_TARGETS 0
#endif
#define HWY_DISABLED_TARGETS                                                                      \
  (NAS_DISABLED_TARGETS | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | \
   HWY_SVE2_128 | HWY_RVV)

// Dispatch takes functions, not templates of them: name() gives both instances of one.
#define NAS_KERNEL(name, kernel) \
  static auto name() { return std::pair(&kernel<float>, &kernel<double>); }
/// The instance of the exported name() that has the type of `function`.
#define NAS_CALL(name, function) std::get<decltype(&function)>(HWY_DYNAMIC_DISPATCH(name)())
#define NAS_INSTANTIATE(function)                     \
  template decltype(function<float>) function<float>; \
  template decltype(function<double>) function<double>;
