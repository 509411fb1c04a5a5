#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention.hpp"
#include "kernels/cuda/head_vectors.hpp"
#include "kernels/cuda/stream.hpp"

namespace nas::cuda {

/// How a row of scores becomes weights; `own` has no form here.
using Normalization = kernels::RowNormalization::Kind;

/// Query i sees the keys j <= i with i - j < window or j < globals; window 0: all.
struct Seen {
  std::int32_t window = 0;
  std::int32_t globals = 0;
};

/// What attention is in one model.
struct Mechanism {
  kernels::Score score = kernels::Score::product;
  Normalization normalization = Normalization::softmax;
  std::int32_t direction = -1;          ///< which of the directions; additive scores only
  std::uint32_t dropout_threshold = 0;  ///< of the weights, as kernels::Dropout
  double dropout_scale = 1.0;
  Seen seen{};
  // Which of the attention's rows of these are its own; -1: it has none.
  std::int32_t distance_biases = -1;
  std::int32_t sums = -1;
  std::int32_t sinks = -1;  ///< Normalization::sink has them
};

/// Causal attention as kernels::Attention, for R models with B sequences and H heads each.
template <class Real>
struct Attention {
  std::int64_t models = 0;
  std::int64_t sequences = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< of keys and values; 0: as many as heads
  std::int64_t tokens = 0;
  std::int64_t width = 0;
  const Mechanism* mechanisms = nullptr;  ///< (R)
  const std::uint64_t* seeds = nullptr;   ///< (R), of dropout; read when the kernel runs
  std::uint64_t site = 0;                 ///< of dropout, as cuda::Dropout
  std::int64_t first = 0;                 ///< likewise, of a model's (B, H, T, T) weights
  HeadVectors<const Real> q, k, v;
  HeadVectors<const Real> inverse_temperature;  ///< one number per query
  const Real* directions = nullptr;             ///< (M, d)
  std::int64_t num_directions = 0;              ///< M
  const Real* distance_biases = nullptr;  ///< (N, H, T), as are the next two of kernels::Attention
  std::int64_t num_distance_biases = 0;
  const double* sums = nullptr;  ///< (N, B, H, T)
  std::int64_t num_sums = 0;
  const Real* sinks = nullptr;  ///< (N, H)
  std::int64_t num_sinks = 0;
  /// Products of float vectors are those of TensorFloat-32 numbers, by tensor cores where the device
  /// has them. Additive scores are not products.
  bool rounds_factors = false;
  /// For the backward pass: attention_weights_size() weights before dropout and (R, B, H, T)
  /// numbers. Null: nothing is kept.
  Real* weights = nullptr;
  Real* statistics = nullptr;

  [[nodiscard]] std::int64_t num_heads() const { return models * sequences * heads; }
  /// How many neighbouring heads have a key head in common.
  [[nodiscard]] constexpr std::int64_t group() const {
    return kv_heads == 0 ? 1 : heads / kv_heads;
  }
};

/// Where gradients go. They are written, not added.
template <class Real>
struct AttentionGradients {
  HeadVectors<const Real> output;  ///< w.r.t. the output: given
  HeadVectors<Real> q, k, v;
  Real* inverse_temperature = nullptr;  ///< (R, B, H, T)
  Real* directions = nullptr;           ///< (M, d)
  // Null: not wanted.
  Real* distance_biases = nullptr;  ///< (N, H, T)
  double* sums = nullptr;           ///< (N, B, H, T)
  Real* sinks = nullptr;            ///< (N, H)
  Real* scratch = nullptr;          ///< attention_scratch_size() numbers
};

/// @return numbers that attention.weights holds: the visible keys of all queries of all heads.
template <class Real>
std::int64_t attention_weights_size(const Attention<Real>& attention) {
  return attention.num_heads() * (attention.tokens * (attention.tokens + 1) / 2);
}

/// @return numbers that gradients.scratch holds.
template <class Real>
std::int64_t attention_scratch_size(const Attention<Real>& attention);

/// Whether attention over so many tokens and elements per head can be computed here: rows of scores
/// of 32 queries have to fit into the shared memory of a block. In float that is 1024 tokens of
/// width 128 on an A100, an H100 and their successors for data centres.
template <class Real>
bool attention_fits(std::int64_t tokens, std::int64_t width);

/// One launch for all models, whatever their mechanisms.
///
/// @param output  (R, B, H, T, d) as laid out.
template <class Real>
void attention_forward(const Attention<Real>& attention, HeadVectors<Real> output, Stream stream);

/// Two launches: by query for dq, the temperatures' gradients and partial sums of those of directions,
/// biases, sums and sinks, by key for dk and dv; and one that adds each kind of partial sums, where
/// there are some. Nothing is added atomically. Tiles that a window hides are left out.
template <class Real>
void attention_backward(const Attention<Real>& attention, const AttentionGradients<Real>& gradients,
                        Stream stream);

}  // namespace nas::cuda
