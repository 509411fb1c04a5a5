#pragma once

#include <cstdint>
#include <memory>

#include <torch/types.h>

#include "core/registry.hpp"
#include "core/visibility.hpp"
#include "genotype/architecture.hpp"
#include "nn/parts/option.hpp"
#include "ops/parameter.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// A residual stream, normalised, and as it goes on.
struct NormBranch {
  torch::Tensor normalised;
  torch::Tensor stream;
};

/// Normalises the vectors of the residual stream, each by itself. It takes its parameters from a
/// scope when it is made, for the R models of that scope; on the CPU no model's result depends on
/// the others.
class Norm {
 public:
  virtual ~Norm() = default;
  /// @param x  (R, ..., D).   @return the same sizes.
  [[nodiscard]] virtual torch::Tensor normalised(const torch::Tensor& x) const = 0;
  /// Where the residual stream goes on beside what is normalised.
  [[nodiscard]] virtual NormBranch branch(const torch::Tensor& stream) const {
    return {normalised(stream), stream};
  }
};

/// What a norm is built from; a width alone is one, too.
struct NormShape {
  std::int64_t width = 0;                          ///< D
  double epsilon = 1e-5;                           ///< gene norm_eps
  operator std::int64_t() const { return width; }  // NOLINT: norms may be made from D alone
};

using NormRegistry = Registry<std::unique_ptr<Norm>(const NormShape&, const ParameterScope&)>;

/// By the keys of model gene norm.
NormRegistry& norms();
/// The norm of a model's genes.
std::unique_ptr<Norm> make_norm(const Architecture& architecture, const ParameterScope& scope);

// NAS_REGISTER_NORM(Class, .key = "rms", .summary = ..., .parameters = ...): the arguments after
// the class are designated initialisers of nas::Component, without its gene.
#define NAS_REGISTER_NORM(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::norms(), "norm", Class, __VA_ARGS__)

}  // namespace nn
}  // namespace nas
