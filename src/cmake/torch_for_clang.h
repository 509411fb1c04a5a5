// LibTorch 1.13 has vectors of incomplete types, which clang refuses where vectors are constexpr, as those of C++20 are: read
// before all else, this takes that from libstdc++'s.
#pragma once
#include <memory>
#include <string>
#ifdef _GLIBCXX20_CONSTEXPR
#pragma push_macro("_GLIBCXX20_CONSTEXPR")
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
#define __fill_a1 __fill_a1_of_bits
#include <vector>
#undef __fill_a1
#pragma pop_macro("_GLIBCXX20_CONSTEXPR")
#endif
