#pragma once

#include <cstdint>

#include <torch/types.h>

#include "nn/attention.hpp"

namespace nas::nn {

/// k = q / sqrt(|q|^2 + 1e-6), (..., d): the keys of a layer whose queries and keys are one vector.
torch::Tensor unit_keys(const torch::Tensor& queries);

/// The newest keys of the query's hash: with rotations R_r, r < rounds,
///
///   hash_r(j) = argmax [R_r' k_j; -R_r' k_j]
///   V_i = for each round the last m of the keys j < i with hash_r(j) = hash_r(i);
///         i itself where there is none
///
/// Which keys a query sees depends on no later token, as it would if keys were sorted by hash and cut
/// into chunks. No gradient flows through a hash.
/// @see Kitaev et al. (2020), Reformer, arXiv:2001.04451, section 2, with such chunks.
class HashedKeys : public Pattern {
 public:
  /// @param rotations  (rounds, d, buckets / 2) float64, on the CPU.   @param most  m >= 1.
  HashedKeys(torch::Tensor rotations, std::int64_t most);

  [[nodiscard]] bool reads_keys() const override { return true; }
  [[nodiscard]] torch::Tensor visible(const torch::Tensor& keys, std::int64_t first) const override;

 private:
  /// (M, B, H, rounds, T) int64, in double, so that they hardly depend on roundings.
  [[nodiscard]] torch::Tensor hashes(const torch::Tensor& keys) const;

  mutable torch::Tensor rotations_;  // on the last device
  std::int64_t most_;
};

}  // namespace nas::nn
