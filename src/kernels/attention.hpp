#pragma once

#include <cstdint>
#include <optional>

#include "kernels/dropout.hpp"
#include "kernels/normalization.hpp"
#include "kernels/pairs.hpp"
#include "kernels/visibility.hpp"

namespace nas {
namespace NAS_PUBLIC kernels {

/// How a query's row of raw scores r comes from q (of the query) and all k.
enum class Score {
  product,       ///< r_j = q.k_j
  silu_product,  ///< r_j = c sigmoid(c), c = q.k_j
  additive,      ///< r_j = v.tanh(q + k_j)
  distance,      ///< r_j = -|q - k_j|^2 / 2
};

/// Vectors of all sequences, heads and tokens: element e lies at
/// data[sequence * sequence_step + head * head_step + token * token_step + e].
template <class Real>
struct HeadVectors {
  Real* data = nullptr;
  std::int64_t sequence_step = 0;
  std::int64_t head_step = 0;
  std::int64_t token_step = 0;

  [[nodiscard]] HeadVectors head(std::int64_t sequence, std::int64_t index) const {
    return {data + sequence * sequence_step + index * head_step, sequence_step, head_step,
            token_step};
  }
  Real* operator[](std::int64_t token) const { return data + token * token_step; }
};

/// Causal attention of B sequences with H heads of width d over T tokens:
///
///   s_ij = u_i r_ij + b[i - j] + c_i - c_j for the keys j that query i sees,
///   w_i = normalization(s_i),   o_i = sum_j dropout(w_ij) v_j
///
/// Query i sees the keys j <= i, with a window those with i - j < window or j < globals
/// (Longformer, arXiv:2004.05150; with few globals StreamingLLM, arXiv:2309.17453).
template <class Real>
struct Attention {
  std::int64_t sequences = 0;
  std::int64_t heads = 0;
  /// Of keys and values, each for as many neighbouring heads of queries (arXiv:2305.13245); a
  /// divisor of `heads`. 0: as many as heads.
  std::int64_t kv_heads = 0;
  std::int64_t tokens = 0;
  std::int64_t width = 0;
  std::int64_t window = 0;   ///< 0: all keys up to the query
  std::int64_t globals = 0;  ///< the first keys, which a window does not hide
  Score score = Score::product;
  RowKernel<Real> normalization{};
  HeadVectors<const Real> q, k, v;
  const Real* direction = nullptr;              ///< v of Score::additive, (d)
  HeadVectors<const Real> inverse_temperature;  ///< u, one number per query
  const Real* distance_biases = nullptr;        ///< b, (H, T); null: 0
  /// c, (B, H, T), say of logarithms of forget gates (arXiv:2503.02130); null: 0. In double, since
  /// sums of -1e3 with differences of 1e-3 between neighbours are usual.
  const double* sums = nullptr;
  /// (H): the score of one more key, whose value is 0; null: there is none. Only of normalizations
  /// with RowKernel::forward_with_sink.
  const Real* sinks = nullptr;
  Dropout dropout;
  /// Of products q.k, but for Score::distance, of weights and values, and of their gradients in
  /// float32, each once in bfloat16; of one part. None: they are products of float32.
  std::optional<PairForm> pairs;
  /// For the backward pass, kept_size() numbers per head. Null or none: it computes them again, the
  /// same bits.
  Real* kept = nullptr;

  [[nodiscard]] std::int64_t num_heads() const { return sequences * heads; }
  /// How many neighbouring heads have a key head in common.
  [[nodiscard]] std::int64_t group() const { return kv_heads == 0 ? 1 : heads / kv_heads; }
};

/// Where gradients go. They are written, not added.
template <class Real>
struct AttentionGradients {
  HeadVectors<const Real> output;  ///< w.r.t. o: given
  HeadVectors<Real> q, k, v;
  Real* direction = nullptr;            ///< (B, H, d): to be summed over heads
  Real* inverse_temperature = nullptr;  ///< (B, H, T)
  // Null: not wanted.
  Real* distance_biases = nullptr;  ///< (B, H, T): to be summed over sequences
  double* sums = nullptr;           ///< (B, H, T)
  Real* sinks = nullptr;            ///< (B, H): to be summed over sequences
};

/// Queries are done this many at a time, over the keys up to the last of them.
inline constexpr std::int64_t kQueryRows = 32;

/// A block of queries [begin, end) with columns for all keys that one of them sees: first `apart`
/// columns for the keys from 0 on, of which `globals` are seen, then those from key `first` on.
/// Both numbers are multiples of kPadding, `first` in pairs of kPanelRows.
struct QueryBlock {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t globals = 0;
  std::int64_t first = 0;

  [[nodiscard]] constexpr std::int64_t rows() const { return end - begin; }
  [[nodiscard]] constexpr std::int64_t apart() const { return padded(globals); }
  [[nodiscard]] constexpr std::int64_t columns() const { return apart() + padded(end) - first; }
};

/// @return the first key of query i's window.
constexpr std::int64_t window_begin(std::int64_t i, std::int64_t window) {
  return window > 0 && i >= window ? i - window + 1 : 0;
}

/// @return the block from query `begin` on.
constexpr QueryBlock query_block(std::int64_t begin, std::int64_t tokens, std::int64_t window,
                                 std::int64_t globals, bool in_pairs) {
  QueryBlock block{.begin = begin,
                   .end = begin + kQueryRows < tokens ? begin + kQueryRows : tokens};
  const std::int64_t step = in_pairs ? kPanelRows : kPadding;
  const std::int64_t first = window_begin(begin, window) / step * step;
  if (globals <= 0 || padded(globals) < first) {
    block.first = first;
    block.globals = first > 0 && globals > 0 ? globals : 0;
  }
  return block;
}

inline constexpr std::int64_t kMostKeptKeys = 512;  ///< that a query sees, for weights to be kept

/// @return numbers that a head keeps: weights before dropout, then each query's statistic; or 0.
constexpr std::int64_t kept_size(std::int64_t tokens, std::int64_t window = 0,
                                 std::int64_t globals = 0, bool in_pairs = false) {
  if (tokens > kMostKeptKeys && (window <= 0 || window + globals > kMostKeptKeys)) return 0;
  std::int64_t size = tokens;
  for (std::int64_t begin = 0; begin < tokens; begin += kQueryRows) {
    const auto block = query_block(begin, tokens, window, globals, in_pairs);
    size += block.rows() * block.columns();
  }
  return size;
}

/// @return elements of scratch memory that a call needs.
/// @param with_biases  whether there are distance_biases or sums, or the score is
/// Score::distance.
std::int64_t attention_workspace(std::int64_t tokens, std::int64_t width, bool with_biases = false);

/// Computes heads [begin, end) of all sequences' heads. Heads are independent: the result does not
/// depend on how they are divided among calls. `workspace` is aligned to 64 bytes.
///
/// @param begin, end  multiples of group() in the backward pass: gradients w.r.t. keys and values
/// are summed over a group's heads, in order.
template <class Real>
void attention_forward(const Attention<Real>& attention, HeadVectors<Real> output,
                       std::int64_t begin, std::int64_t end, Real* workspace);

/// The same for the gradients, from what the forward pass kept.
template <class Real>
void attention_backward(const Attention<Real>& attention, const AttentionGradients<Real>& gradients,
                        std::int64_t begin, std::int64_t end, Real* workspace);

}  // namespace kernels
}  // namespace nas
