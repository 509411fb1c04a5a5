#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include <torch/types.h>

#include "core/numerical_mode.hpp"
#include "core/visibility.hpp"
#include "ops/parameter.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// What is made of the heads' vectors in q and in k of M models before they are scored.
struct VectorMap {
  enum class Kind {
    same,  ///< nothing
    unit,  ///< q / max(|q|, 1e-12), and k likewise
    pair,  ///< q W_q' + b and k W_k': the terms of a linear map of pairs [q, k]
    own,   ///< by LibTorch's operations
  };
  Kind kind = Kind::same;
  torch::Tensor weight{};  ///< of pair: (M, d, 2 d), W_q beside W_k
  torch::Tensor bias{};    ///< of pair: (M, d)
  /// Of own: q (M, B, T, H d) and k (M, B, T, G d), of the mapped ones.
  std::function<std::array<torch::Tensor, 2>(const torch::Tensor& q, const torch::Tensor& k)>
      function{};
};

/// A map and the models of an array that have it.
struct MappedModels {
  Models models;
  VectorMap map;
};

/// x / max(|x|, 1e-12) along the last dimension, by LibTorch's operations.
torch::Tensor unit(const torch::Tensor& x);

/// The terms of VectorMap::Kind::pair in the way of a mode (ops/product.hpp).
///
/// @param q, k  (M, ..., d).   @param weight  (M, d, 2 d).   @param bias  (M, d).
/// @return (M, ..., d) each.
std::array<torch::Tensor, 2> pair_terms(const torch::Tensor& q, const torch::Tensor& k,
                                        const torch::Tensor& weight, const torch::Tensor& bias,
                                        NumericalMode mode);

/// The mapped vectors of all models of an array: on the CPU one operation for all but those that
/// have a function of their own, backward likewise, in which no model's numbers depend on the
/// others; not for second derivatives. q and k themselves where no model has a map.
///
/// @param q      (R, B, T, H d), float32 or float64.   @param k  (R, B, T, G d).
/// @param maps   of all R models.   @param width  d.
/// @return the same sizes.
std::array<torch::Tensor, 2> score_vectors(const torch::Tensor& q, const torch::Tensor& k,
                                           const std::vector<MappedModels>& maps,
                                           std::int64_t width);

}  // namespace nn
}  // namespace nas
