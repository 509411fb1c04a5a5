#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/safetensors.hpp"
#include "nn/transformer.hpp"

namespace nas {

/// How far a model is from what another program computed of one tensor.
struct Deviation {
  std::string tensor;
  double largest = 0.0;  ///< difference of two numbers
  double share = 0.0;    ///< of the largest number that the other program has
};

/// How a model agrees with what another program computed.
struct Agreement {
  std::vector<Deviation> deviations;
  std::vector<std::int64_t> greedy,
      expected_greedy;  ///< likeliest tokens behind the first sequence

  /// What differs by more than 2e-5 of the largest number, as a sentence; empty: nothing.
  [[nodiscard]] std::string difference() const;
};

/// The types of tensors that such a file has.
inline const std::vector<std::string> kExpectedTypes{"F32", "F64", "I64"};

/// Compares a model with a file of `ids` (B, T) and any of `hidden.N` (B, T, D), the residual stream behind N layers,
/// `logits` (B, T, V), `nll` (1), the mean of all tokens but the first ones in nats, and `greedy` (n), the likeliest
/// tokens behind the first sequence, by steps of a Decoder.
/// @throws InputError naming the tensor that is missing, or what it has and must have.
Agreement agreement(nn::Transformer& model, SafetensorsFile& expected);

}  // namespace nas
