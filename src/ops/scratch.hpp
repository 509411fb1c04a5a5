#pragma once

#include <cstddef>
#include <cstdint>

#include <c10/core/CPUAllocator.h>

#include "core/visibility.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// Uninitialised memory of LibTorch's CPU allocator, which counts it, aligned to 64 bytes: what a
/// tensor would be dispatched for.
template <class Real>
class Scratch {
 public:
  explicit Scratch(std::int64_t size)
      : memory_(c10::GetCPUAllocator()->allocate(static_cast<std::size_t>(size) * sizeof(Real))) {}

  [[nodiscard]] Real* data() const { return static_cast<Real*>(memory_.get()); }

 private:
  c10::DataPtr memory_;
};

}  // namespace nn
}  // namespace nas
