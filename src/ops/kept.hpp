#pragma once

#include <utility>

#include <torch/autograd.h>
#include <torch/custom_class.h>

namespace nas::nn {

/// What the passes of an autograd function share and is no tensor.
template <class T>
struct Kept : torch::CustomClassHolder {
  T value;
  explicit Kept(T given) : value(std::move(given)) {}
};
template <class T>
using KeptPointer = c10::intrusive_ptr<Kept<T>>;

template <class T>
KeptPointer<T> make_kept(T value) {
  return c10::make_intrusive<Kept<T>>(std::move(value));
}

/// Leaves it for the backward pass; one per function.
template <class T>
void keep(torch::autograd::AutogradContext* context, const KeptPointer<T>& kept) {
  context->saved_data["kept"] = at::IValue::make_capsule(kept);
}

/// What the forward pass left, which lives as long as the context.
/// @tparam T  as given to keep().
template <class T>
const T& kept(torch::autograd::AutogradContext* context) {
  const auto capsule = context->saved_data["kept"].toCapsule();
  return static_cast<const Kept<T>&>(*capsule).value;
}

}  // namespace nas::nn
