#pragma once

#include <cstdint>

#include "kernels/dropout.hpp"
#include "kernels/normalization.hpp"

namespace nas::kernels {

/// How a query's row of raw scores r comes from q (of the query) and all k.
enum class Score {
  product,       ///< r_j = q.k_j
  silu_product,  ///< r_j = c sigmoid(c), c = q.k_j
  additive,      ///< r_j = v.tanh(q + k_j)
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
///   s_ij = u_i r_ij for j <= i,   w_i = normalization(s_i),   o_i = sum_j dropout(w_ij) v_j
template <class Real>
struct Attention {
  std::int64_t sequences = 0;
  std::int64_t heads = 0;
  std::int64_t tokens = 0;
  std::int64_t width = 0;
  Score score = Score::product;
  RowKernel<Real> normalization{};
  HeadVectors<const Real> q, k, v;
  const Real* direction = nullptr;              ///< v of Score::additive, (d)
  HeadVectors<const Real> inverse_temperature;  ///< u, one number per query
  Dropout dropout;
  /// For the backward pass, weights_size() numbers per head: weights before dropout, and the
  /// normalization's statistic of each query. Null: nothing is kept.
  Real* weights = nullptr;
  Real* statistics = nullptr;  ///< (B, H, T)

  [[nodiscard]] std::int64_t num_heads() const { return sequences * heads; }
};

/// Where gradients go. They are written, not added.
template <class Real>
struct AttentionGradients {
  HeadVectors<const Real> output;  ///< w.r.t. o: given
  HeadVectors<Real> q, k, v;
  Real* direction = nullptr;            ///< (B, H, d): to be summed over heads
  Real* inverse_temperature = nullptr;  ///< (B, H, T)
};

/// Queries are done this many at a time, over the keys up to the last of them.
inline constexpr std::int64_t kQueryRows = 32;

/// @return how many weights a head keeps: blocks of rows, each as long as its last row, padded.
constexpr std::int64_t weights_size(std::int64_t tokens) {
  std::int64_t size = 0;
  for (std::int64_t begin = 0; begin < tokens; begin += kQueryRows) {
    const std::int64_t end = begin + kQueryRows < tokens ? begin + kQueryRows : tokens;
    size += (end - begin) * padded(end);
  }
  return size;
}

/// @return elements of scratch memory that a call needs.
std::int64_t attention_workspace(std::int64_t tokens, std::int64_t width);

/// Computes heads [begin, end) of all sequences' heads. Heads are independent: the result does not
/// depend on how they are divided among calls. `workspace` is aligned to 64 bytes.
template <class Real>
void attention_forward(const Attention<Real>& attention, HeadVectors<Real> output,
                       std::int64_t begin, std::int64_t end, Real* workspace);

/// The same for the gradients, from the weights and statistics that the forward pass kept.
template <class Real>
void attention_backward(const Attention<Real>& attention, const AttentionGradients<Real>& gradients,
                        std::int64_t begin, std::int64_t end, Real* workspace);

}  // namespace nas::kernels
