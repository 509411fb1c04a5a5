#pragma once

#include <cstdint>

namespace nas::cuda {

/// Numbers that kernels read or write: of a type Real, or rounded to bfloat16, which Real = float
/// has beside it. Null: there are none.
template <class Real>
struct Elements {
  void* data = nullptr;
  bool rounded = false;

  Elements() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): stands for them
  Elements(Real* reals) : data(reals) {}
  Elements(void* given, bool in_bfloat16) : data(given), rounded(in_bfloat16) {}

  [[nodiscard]] constexpr bool is_null() const { return data == nullptr; }
};

}  // namespace nas::cuda
