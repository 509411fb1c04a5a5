#pragma once

#include <array>
#include <cstdint>

#include "ops/parameter.hpp"

namespace nas {

/// A matrix that learns by what is added to it,
///
///   W = W0 + A B^T ,   A (out, r), B (in, r),
///
/// where W0 stays. A begins with zeros, B with N(0, 1/r), so that a first step of A changes an entry of W by about the
/// rate. What computes with W needs not know: the matrix is always the merged one.
/// @see Hu et al. 2022, arXiv:2106.09685; of converted models LoLCATs, arXiv:2410.10254.
class LowRank {
 public:
  /// @param weight  (1, out, in), W0, of an array of one model; shared.   @param rank  r, from 1.
  LowRank(nn::Parameter weight, std::int64_t rank);

  /// "NAME.a" and "NAME.b".
  [[nodiscard]] const std::array<nn::Parameter, 2>& factors() const { return factors_; }
  /// The gradients of A and B from that of W, which is dropped: G B and G^T A. None where W has none.
  void take_gradient();
  /// Makes W what A and B say.
  void merge();

 private:
  nn::Parameter weight_;
  torch::Tensor base_;
  std::array<nn::Parameter, 2> factors_;
};

}  // namespace nas
