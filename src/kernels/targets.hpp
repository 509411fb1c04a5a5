// Which instruction sets the kernels are compiled for; the best one that the processor has is
// chosen at run time. Included first by every .cpp of this folder.
//
// SSE2 (or what the compiler's flags allow), AVX2 and AVX-512 on x86-64, the usual one elsewhere.
// Those in between gain nothing here and would double the build. Vectors of a size that the
// compiler does not know (SVE, RISC-V) cannot be kept in arrays, as the products do.
#pragma once

#ifndef NAS_DISABLED_TARGETS  // further ones, by a build that has to be short
#define NAS_DISABLED_TARGETS 0
#endif
#define HWY_DISABLED_TARGETS                                                                      \
  (NAS_DISABLED_TARGETS | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | \
   HWY_SVE2_128 | HWY_RVV)
