#pragma once

#include <torch/types.h>

#include "nn/parts/option.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// Normalises the vectors of heads.
class VectorNorm {
 public:
  virtual ~VectorNorm() = default;
  /// @param vectors  (M, B, T, heads, d).
  [[nodiscard]] virtual torch::Tensor normalised(const torch::Tensor& vectors) const = 0;
};

/// Of genes qk_norm and head_norm.
OptionRegistry<VectorNorm>& vector_norms();

/// Registers a norm of vectors, an option of two genes.
///
/// @param component  of head_norm: parameters and operations of one norm of vectors that are D wide
/// together. qk_norm has two, of D and of G d.
template <class Module>
bool register_vector_norm(Component component, const char* file) {
  register_module<Module>(vector_norms(), component, file);
  auto of_keys = component;
  of_keys.gene = "qk_norm";
  of_keys.parameters = [one = component.parameters](AttentionShape shape) {
    shape.of_head = shape.score_width();
    return (shape.own_key_width() > 0 ? 2 : 1) * one(shape);
  };
  of_keys.flops = [one = component.flops](const AttentionShape& shape) {
    return one(shape) *
           (1.0 + static_cast<double>(shape.own_key_width()) / static_cast<double>(shape.inner()));
  };
  return components().add(std::move(component)) && components().add(std::move(of_keys));
}

// NAS_REGISTER_VECTOR_NORM(Class, .key = ...): as of NAS_REGISTER_OPTION.
#define NAS_REGISTER_VECTOR_NORM(Class, ...)                                                 \
  [[maybe_unused]] const bool k##Class##Registered = ::nas::nn::register_vector_norm<Class>( \
      ::nas::Component{.gene = "head_norm", __VA_ARGS__}, __FILE__)

}  // namespace nn
}  // namespace nas
