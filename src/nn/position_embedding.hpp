#pragma once

#include <cstdint>

#include <torch/types.h>

#include "genotype/architecture.hpp"
#include "ops/parameter.hpp"

namespace nas::nn {

/// What is added to the vectors of tokens: a learned vector per place (P), sinusoids (c S), or
/// nothing.
///
///   S[t, m] = sin(t / 10000^(m / D)) for even m, cos(t / 10000^((m - 1) / D)) for odd m
///
/// @see Vaswani et al. (2017), arXiv:1706.03762, section 3.5.
class PositionEmbedding {
 public:
  /// @throws InputError if position_embedding is none of these words.
  PositionEmbedding(const Architecture& architecture, const ParameterScope& scope);

  /// @return (R, >= T, D); undefined: nothing is added.
  torch::Tensor operator()(std::int64_t tokens);
  /// @return what is added at one place, from 0, (R, 1, D); undefined: nothing is added.
  torch::Tensor of_place(std::int64_t place);

 private:
  /// (R, T D, 1), on the device and of the type of c.
  const torch::Tensor& sinusoids(std::int64_t tokens);

  std::int64_t models_;
  std::int64_t width_;
  NumericalMode mode_;
  torch::Tensor learned_;    ///< P, (R, L, D)
  torch::Tensor scale_;      ///< c, (R, 1)
  torch::Tensor sinusoids_;  ///< of the last number of tokens, device and type
};

}  // namespace nas::nn
