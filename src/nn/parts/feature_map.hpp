#pragma once

#include <cstdint>
#include <memory>

#include <torch/types.h>

#include "core/registry.hpp"
#include "core/visibility.hpp"
#include "genotype/component.hpp"
#include "nn/registration.hpp"
#include "ops/parameter.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// What the feature map of one recurrent layer is built from.
struct FeatureContext {
  AttentionShape shape;    ///< of keys: H d_k wide, with the sizes of the layer
  std::int64_t layer = 0;  ///< from 0
};

/// phi of a recurrent layer, whose entries are not negative as sums of weights are to be: products
/// phi(q).phi(k) take the place of e^(q.k). Gene feature but for identity, which has no module; f is
/// Component::features.
class FeatureMap {
 public:
  virtual ~FeatureMap() = default;
  /// @param q  (M, B, T, H, d_k).   @return (M, B, T, H, f). A factor for each query cancels.
  [[nodiscard]] virtual torch::Tensor of_queries(const torch::Tensor& q) const = 0;
  /// @param k  (M, B, T, H, d_k).   @return (M, B, T, H, f).
  [[nodiscard]] virtual torch::Tensor of_keys(const torch::Tensor& k) const {
    return of_queries(k);
  }
  /// What is added to the sum of a query's weights before it divides.
  [[nodiscard]] virtual double epsilon() const { return 1e-6; }
  /// Numbers that are drawn, but no parameters: not trained, and the same in all models; a handle.
  /// Undefined: there are none.
  [[nodiscard]] virtual torch::Tensor drawn() const { return {}; }
};

using FeatureMapRegistry =
    Registry<std::unique_ptr<FeatureMap>(const FeatureContext&, const ParameterScope&)>;
FeatureMapRegistry& feature_maps();

// NAS_REGISTER_FEATURE(Class, .key = "elu1", .summary = ...): the arguments after the class are
// designated initialisers of nas::Component, without its gene.
#define NAS_REGISTER_FEATURE(Class, ...)                                              \
  [[maybe_unused]] const bool k##Class##Registered = ::nas::nn::register_part<Class>( \
      ::nas::nn::feature_maps(), ::nas::Component{.gene = "feature", __VA_ARGS__}, __FILE__)

}  // namespace nn
}  // namespace nas
