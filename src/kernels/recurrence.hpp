#pragma once

#include <cstdint>

namespace nas::kernels {

/// Numbers that rows of matrices are padded to.
inline constexpr std::int64_t kRecurrencePadding = 16;

/// Rows of tokens, row t at data + t * row; null: there are none.
template <class Real>
struct TokenRows {
  Real* data = nullptr;
  std::int64_t row = 0;
};

struct RecurrenceShape {
  std::int64_t tokens = 0;
  std::int64_t features = 0;  ///< f of queries and keys
  std::int64_t width = 0;     ///< d of values
  std::int64_t chunk = 0;     ///< tokens of a chunk
  bool by_channel = false;    ///< whether decays are of each feature, and not of the whole state

  [[nodiscard]] constexpr std::int64_t chunks() const { return (tokens + chunk - 1) / chunk; }
  [[nodiscard]] constexpr std::int64_t padded_width() const {
    return (width + kRecurrencePadding - 1) / kRecurrencePadding * kRecurrencePadding;
  }
};

/// Of a sequence, or gradients w.r.t. it: written, where not null.
template <class Real>
struct RecurrenceRows {
  TokenRows<Real> queries, keys;  ///< of f numbers
  TokenRows<Real> values;         ///< of d
  TokenRows<Real> log_decays;     ///< of f or 1; null: 0
  TokenRows<Real> erased;         ///< of f; null: nothing is erased
};

/// What the backward pass needs of the forward pass.
template <class Real>
struct RecurrenceKept {
  Real* states = nullptr;   ///< S before each chunk and behind the last, (chunks + 1, f, padded d)
  Real* updates = nullptr;  ///< u of each token, (T, padded d)
};

/// @return elements of the memory that both passes work in.
std::int64_t recurrence_scratch(const RecurrenceShape& shape);

/// One sequence of one head, S_0 = 0, in float32 or float64; what it gives does not depend on others:
///
///   u_t = v_t - S_{t-1}' (alpha_t . e_t),  S_t = diag(alpha_t) S_{t-1} + k_t u_t',  o_t = S_t' q_t
///
/// by chunks: (I + W) U = V - e^L E S, O = e^L Q S + A U, S <- e^(L_C) S + (e^(L_C - L) K)' U, L the
/// sums of log alpha from the chunk's start, A_ij = q_i.k_j e^(L_i - L_j) for j <= i, W_ij = e_i.k_j
/// e^(L_i - L_j) for j < i. Of channels these are products of factors relative to the chunk's middle.
/// O(T (C (f + d) + f d)) operations; a chunk stays in the cache.
///
/// @param outputs  rows of d.   @param scratch  recurrence_scratch() elements.
/// @see Yang et al. (2024), arXiv:2406.06484, section 3.
template <class Real>
void recurrence(const RecurrenceShape& shape, const RecurrenceRows<const Real>& of,
                const RecurrenceKept<Real>& kept, const TokenRows<Real>& outputs, Real* scratch);

/// Gradients. With s_i = q_i . dq_i + e_i . de_i - k_i . dk_i, of which token i's sum L_i is the
/// logarithm of a factor, that w.r.t. log alpha_t is the sum of s_i from t to the chunk's end, and of
/// S . dS behind the chunk.
///
/// @param by_outputs  rows of d.   @param by_state  (f, d) w.r.t. the last state; null: 0.
template <class Real>
void recurrence_backward(const RecurrenceShape& shape, const RecurrenceRows<const Real>& of,
                         const RecurrenceKept<const Real>& kept,
                         const TokenRows<const Real>& by_outputs, const Real* by_state,
                         const RecurrenceRows<Real>& by, Real* scratch);

}  // namespace nas::kernels
