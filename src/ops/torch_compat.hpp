#pragma once

#include <cstddef>
#include <cstdint>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <c10/core/Allocator.h>

namespace nas::nn {

/// A generator of a device with its own state: it neither reads nor moves the global ones.
inline at::Generator make_generator(c10::Device device, std::uint64_t seed) {
  if (device.is_cpu()) return at::detail::createCPUGenerator(seed);
  auto generator = at::globalContext().defaultGenerator(device).clone();
  generator.set_current_seed(seed);
  return generator;
}

/// c10::Allocator for a subclass that implements take(): allocate() was const up to Torch 2.2, and
/// later versions ask for copy_data().
///
/// @tparam Allocate  type of allocate() in this Torch: whether it is const.
template <class Base = c10::Allocator, class Allocate = decltype(&Base::allocate)>
class AllocatorOfThisTorch : public Base {
 public:
  c10::DataPtr allocate(std::size_t bytes) override { return take(bytes); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    this->default_copy_data(to, from, bytes);
  }

 protected:
  [[nodiscard]] virtual c10::DataPtr take(std::size_t bytes) const = 0;
};

template <class Base>
class AllocatorOfThisTorch<Base, c10::DataPtr (Base::*)(std::size_t) const> : public Base {
 public:
  c10::DataPtr allocate(std::size_t bytes) const override { return take(bytes); }

 protected:
  [[nodiscard]] virtual c10::DataPtr take(std::size_t bytes) const = 0;
};

}  // namespace nas::nn
