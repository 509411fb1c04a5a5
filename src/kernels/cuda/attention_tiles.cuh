// Attention by tiles of 32 tokens by 32 elements in shared memory. A block of four warps has 32
// queries (or keys) of one head of one model; rows of scores are 8 of each warp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/attention.hpp"
#include "kernels/cuda/dropout.cuh"

namespace nas::cuda {

inline constexpr int kTile = 32;
inline constexpr int kRows = kTile / kWarps;  // of a warp
inline constexpr int kSums = kRows;           // of a thread
inline constexpr int kRowStride = kTile + 4;  // rows begin at multiples of four, in different banks
inline constexpr int kMostStride = kTile + 8;

constexpr std::int64_t padded(std::int64_t size) { return (size + kTile - 1) / kTile * kTile; }

/// How the shared memory of a block is divided.
template <class Real>
class Memory {
 public:
  __device__ Memory(std::int64_t tokens, std::int64_t width)
      : vectors(shared_memory<Real>()),
        vector_stride(static_cast<int>(padded(width)) + 4),
        tile(vectors + kTile * vector_stride),
        left(tile + kTile * kMostStride),
        left_stride(static_cast<int>(padded(tokens)) + 4),
        direction(left + kTile * (left_stride + kMostStride - kRowStride)) {}

  static std::size_t bytes(std::int64_t tokens, std::int64_t width) {
    return sizeof(Real) *
           static_cast<std::size_t>(kTile * (padded(width) + 4) + kTile * kMostStride +
                                    kTile * (padded(tokens) + 8) + padded(width));
  }

  Real* vectors;  ///< 32 tokens, all elements
  int vector_stride;
  Real* tile;  ///< 32 tokens, 32 elements
  Real* left;  ///< 32 rows of scores or weights
  int left_stride;
  Real* direction;
};

/// A head's vectors.
template <class Real>
struct Tokens {
  Real* data;
  std::int64_t step;
  __device__ Real* operator[](int token) const { return data + token * step; }
};

/// The keys that a query sees: [0, globals) and [begin, end). None: end = 0.
struct Visible {
  int globals = 0;
  int begin = 0;  ///< above globals, or 0
  int end = 0;

  [[nodiscard]] __device__ int count() const { return globals + end - begin; }
  /// The n-th of them.
  [[nodiscard]] __device__ int key(int n) const { return n < globals ? n : begin - globals + n; }
};

/// The head and the 32 tokens that a block works on.
template <class Real>
struct Place {
  const Attention<Real>& attention;
  std::int64_t model = blockIdx.z;
  std::int64_t head = blockIdx.y;  ///< of the model's sequences' heads
  int first;
  int tokens = static_cast<int>(attention.tokens);
  int width = static_cast<int>(attention.width);

  [[nodiscard]] __device__ std::int64_t heads_of_model() const {
    return attention.sequences * attention.heads;
  }
  [[nodiscard]] __device__ std::int64_t head_of_all() const {
    return model * heads_of_model() + head;
  }
  /// Where query 0 of the head's causal rows of numbers is.
  template <class Number>
  [[nodiscard]] __device__ Number* rows(Number* all) const {
    return all + head_of_all() * (attention.tokens * (attention.tokens + 1) / 2);
  }
  [[nodiscard]] __device__ static int row(int query) { return query * (query + 1) / 2; }
  /// The number of a weight in its model, as dropout counts them.
  [[nodiscard]] __device__ std::int64_t element(int query, int key) const {
    return head * tokens * tokens + (query * tokens + key);
  }
  template <class Number>
  [[nodiscard]] __device__ Tokens<Number> of(const HeadVectors<Number>& vectors) const {
    return {vectors.data + model * vectors.model_step +
                head / attention.heads * vectors.sequence_step +
                head % attention.heads * vectors.head_step,
            vectors.token_step};
  }
  /// Those of keys or values, which neighbouring heads share.
  template <class Number>
  [[nodiscard]] __device__ Tokens<Number> of_keys(const HeadVectors<Number>& vectors) const {
    return {vectors.data + model * vectors.model_step +
                head / attention.heads * vectors.sequence_step +
                head % attention.heads / attention.group() * vectors.head_step,
            vectors.token_step};
  }
  /// That of a head further on.
  [[nodiscard]] __device__ Place next(std::int64_t heads) const {
    Place place = *this;
    place.head += heads;
    return place;
  }
  [[nodiscard]] __device__ Visible visible(int query) const {
    if (query >= tokens) return {};
    const auto& [window, globals] = mechanism().seen;
    const int begin = window > 0 && query >= window ? query - window + 1 : 0;
    return begin > globals ? Visible{globals, begin, query + 1} : Visible{0, 0, query + 1};
  }
  /// Whether one of queries [query, query + 32) sees one of keys [key, key + 32), both before the
  /// mask of later keys.
  [[nodiscard]] __device__ bool is_seen(int query, int key) const {
    const auto& [window, globals] = mechanism().seen;
    return window == 0 || query - (key + kTile - 1) < window || key < globals;
  }
  [[nodiscard]] __device__ const Mechanism& mechanism() const {
    return attention.mechanisms[model];
  }
  [[nodiscard]] __device__ Dropout dropout() const {
    return {attention.seeds, attention.site, mechanism().dropout_threshold,
            mechanism().dropout_scale, attention.first};
  }
};

/// Number n of the warp's rows.
__device__ inline int row_index(int n) { return warp_index() * kRows + n; }

/// Tokens [first, first + 32) and elements [element, element + 32), prepared for a score; those that do
/// not exist are 0 before.
template <class Score, class Real>
__device__ void load_tile(const Score& score, const Tokens<const Real>& vectors, int first,
                          int element, int tokens, int width, Real* tile, int stride) {
  const int e = element + lane_index();
  for (int n = 0; n < kRows; ++n) {
    const int token = first + row_index(n);
    tile[row_index(n) * stride + lane_index()] =
        score.prepare(token < tokens && e < width ? vectors[token][e] : Real{0});
  }
}

/// All elements of the block's tokens.
template <class Score, class Real>
__device__ void load_vectors(const Score& score, const Tokens<const Real>& vectors,
                             const Place<Real>& place, const Memory<Real>& memory) {
  for (int e = 0; e < place.width; e += kTile) {
    load_tile(score, vectors, place.first, e, place.tokens, place.width, memory.vectors + e,
              memory.vector_stride);
  }
}

template <class Real>
struct alignas(16) Four {
  Real at[4];
};

template <class Real>
__device__ Four<Real> load_four(const Real* from) {
  return *reinterpret_cast<const Four<Real>*>(from);
}

/// A tile of the head's causal rows: calls use(query, key, map(query, key, number)) with numbers within
/// the tile, 0 for pairs that do not exist. Lanes have keys side by side.
template <class Real, class Map, class Use>
__device__ void for_causal_tile(const Real* rows, int first_query, const Place<Real>& place,
                                const Map& map, const Use& use) {
  const int key = place.first + lane_index();
  for (int n = 0; n < kRows; ++n) {
    const int query = first_query + row_index(n);
    use(row_index(n), lane_index(),
        key <= query && query < place.tokens ? map(query, key, rows[Place<Real>::row(query) + key])
                                             : Real{0});
  }
}

/// Zeros for what is not seen, up to the end of the block's keys.
template <class Real>
__device__ void clear_hidden(Real* row, const Visible& seen, int first) {
  for (int j = lane_index(); j < first + kTile; j += kWarp) {
    if (j >= seen.end || (j >= seen.globals && j < seen.begin)) row[j] = 0;
  }
}

}  // namespace nas::cuda
