#pragma once

#include <cstdint>
#include <memory>

#include <torch/types.h>

#include "core/registry.hpp"
#include "core/visibility.hpp"
#include "nn/parts/option.hpp"
#include "ops/dropout.hpp"
#include "ops/parameter.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// What a feed-forward layer is built from.
struct FeedForwardShape {
  std::int64_t width = 0;                ///< D
  std::int64_t hidden = 0;               ///< F
  Start output_start = Start::normal();  ///< of the matrix that writes to the residual stream
};

/// A feed-forward layer of each model of an array: from each token's vector alone to what is added
/// to it. It takes its parameters from a scope when it is made, for the R models of that scope; on
/// the CPU no model's result depends on the others.
class FeedForward {
 public:
  virtual ~FeedForward() = default;
  /// @param x      (R, B, T, D), the residual stream, normalised.
  /// @param masks  of the dropout of the hidden values (R, B, T, F).
  /// @return what is added to the stream, before its dropout, (R, B, T, D).
  [[nodiscard]] virtual torch::Tensor forward(const torch::Tensor& x, const Masks& masks) const = 0;
  /// The same, of which a bias may be left to be added with the dropout.
  [[nodiscard]] virtual Biased before_bias(const torch::Tensor& x, const Masks& masks) const {
    return forward(x, masks);
  }
};

/// y = W_2 dropout(silu(W_g x) * W_1 x), element by element; silu(x) = x / (1 + e^-x). With biases b_2, b_g and b_1, or none.
class GatedFeedForward : public FeedForward {
 public:
  [[nodiscard]] torch::Tensor forward(const torch::Tensor& x, const Masks& masks) const override;

 protected:
  GatedFeedForward(const FeedForwardShape& shape, const ParameterScope& scope, bool biased);

 private:
  bool fused_;
  Linear gate_, expand_, contract_;
};

using FeedForwardRegistry =
    Registry<std::unique_ptr<FeedForward>(const FeedForwardShape&, const ParameterScope&)>;

/// By the keys of gene ffn.
FeedForwardRegistry& feed_forwards();

/// Parameters of a layer of two matrices with biases, W_1 (F, D) and W_2 (D, F).
inline std::int64_t parameters_of_two_matrices(const AttentionShape& shape) {
  return 2 * shape.width * shape.hidden + shape.hidden + shape.width;
}
/// Floating-point operations of its products.
inline double flops_of_two_matrices(const AttentionShape& shape) {
  return 4.0 * static_cast<double>(shape.context * shape.width * shape.hidden);
}
/// The same of three, one of which is a gate.
inline double flops_of_three_matrices(const AttentionShape& shape) {
  return 6.0 * static_cast<double>(shape.context * shape.width * shape.hidden);
}

// NAS_REGISTER_FEED_FORWARD(Class, .key = "swiglu", .summary = ..., .parameters = ...): the
// arguments after the class are designated initialisers of nas::Component, without its gene. Its
// costs are those of a whole layer of width F = AttentionShape::hidden.
#define NAS_REGISTER_FEED_FORWARD(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::feed_forwards(), "ffn", Class, __VA_ARGS__)

}  // namespace nn
}  // namespace nas
