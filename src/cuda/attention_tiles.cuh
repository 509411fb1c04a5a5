// Attention by tiles of 32 tokens by 32 elements in shared memory. A block of four warps has 32
// queries (or keys) of one head of one model, a warp 8 of them; each thread has a key (or an
// element) for its warp's 8 rows. So a thread does 32 multiplications for 9 reads of four numbers,
// which keeps arithmetic and shared memory about equally busy.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/attention.hpp"
#include "cuda/dropout.cuh"

namespace nas::cuda {

inline constexpr int kTile = 32;
inline constexpr int kRows = kTile / kWarps;  // of a warp
inline constexpr int kStride = kTile + 4;     // rows begin at multiples of four, in different banks

constexpr std::int64_t padded(std::int64_t size) { return (size + kTile - 1) / kTile * kTile; }

/// How the shared memory of a block is divided.
template <class Real>
class Memory {
 public:
  __device__ Memory(std::int64_t tokens, std::int64_t width)
      : vectors(shared_memory<Real>()),
        vector_stride(static_cast<int>(padded(width)) + 4),
        tile(vectors + kTile * vector_stride),
        left(tile + kTile * kStride),
        left_stride(static_cast<int>(padded(tokens)) + 4),
        direction(left + kTile * left_stride) {}

  static std::size_t bytes(std::int64_t tokens, std::int64_t width) {
    return sizeof(Real) * static_cast<std::size_t>(kTile * (padded(width) + 4) + kTile * kStride +
                                                   kTile * (padded(tokens) + 4) + padded(width));
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

/// The head and the 32 tokens that a block works on.
template <class Real>
struct Place {
  const Attention<Real>& attention;
  std::int64_t model = blockIdx.z;
  std::int64_t head = blockIdx.y;  ///< of the model's sequences' heads
  int first;
  int tokens = static_cast<int>(attention.tokens);
  int width = static_cast<int>(attention.width);

  [[nodiscard]] __device__ std::int64_t head_of_all() const {
    return model * attention.sequences * attention.heads + head;
  }
  /// Where query 0 of the head's causal rows of numbers is.
  template <class Number>
  [[nodiscard]] __device__ Number* rows(Number* all) const {
    return all + head_of_all() * (attention.tokens * (attention.tokens + 1) / 2);
  }
  [[nodiscard]] __device__ static std::int64_t row(std::int64_t query) {
    return query * (query + 1) / 2;
  }
  /// The number of a weight in its model, as dropout counts them.
  [[nodiscard]] __device__ std::int64_t element(int query, int key) const {
    return (head * tokens + query) * tokens + key;
  }
  template <class Number>
  [[nodiscard]] __device__ Tokens<Number> of(const HeadVectors<Number>& vectors) const {
    return {vectors.data + model * vectors.model_step +
                head / attention.heads * vectors.sequence_step +
                head % attention.heads * vectors.head_step,
            vectors.token_step};
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

/// Tokens [first, first + 32) and elements [element, element + 32), prepared; those that do not
/// exist are 0 before.
template <class Real, class Prepare>
__device__ void load_tile(const Tokens<const Real>& vectors, int first, int element, int tokens,
                          int width, const Prepare& prepare, Real* tile, int stride) {
  const int e = element + lane_index();
  for (int n = 0; n < kRows; ++n) {
    const int token = first + row_index(n);
    tile[row_index(n) * stride + lane_index()] =
        prepare(token < tokens && e < width ? vectors[token][e] : Real{0});
  }
}

template <class Real, class Prepare>
__device__ void load_vectors(const Tokens<const Real>& vectors, const Place<Real>& place,
                             const Prepare& prepare, const Memory<Real>& memory) {
  for (int e = 0; e < place.width; e += kTile) {
    load_tile(vectors, place.first, e, place.tokens, place.width, prepare, memory.vectors + e,
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

/// For each of the warp's rows and each key that they can see, lane by lane: use(n, key, sum), sum
/// made by add() over all elements of the row's vector in memory.vectors and the key's.
template <class Real, class Prepare, class Add, class Use>
__device__ void for_pairs(const Tokens<const Real>& keys, const Place<Real>& place,
                          const Memory<Real>& memory, const Prepare& prepare, const Add& add,
                          const Use& use) {
  for (int first = 0; first <= place.first; first += kTile) {
    Real sums[kRows] = {};
    for (int begin = 0; begin < place.width; begin += kTile) {
      __syncthreads();
      load_tile(keys, first, begin, place.tokens, place.width, prepare, memory.tile, kStride);
      __syncthreads();
      const Real* rows = memory.vectors + row_index(0) * memory.vector_stride + begin;
      for (int e = 0; e < kTile; e += 4) {
        const Four<Real> key = load_four(memory.tile + lane_index() * kStride + e);
#pragma unroll
        for (int n = 0; n < kRows; ++n) {
          const Four<Real> row = load_four(rows + n * memory.vector_stride + e);
#pragma unroll
          for (int x = 0; x < 4; ++x) add(sums[n], row.at[x], key.at[x], begin + e + x);
        }
      }
    }
#pragma unroll
    for (int n = 0; n < kRows; ++n) use(n, first + lane_index(), sums[n]);
  }
}

/// For each of the warp's rows: add(n, left[row][t], tile[t][lane]) for the 32 tokens t in order.
template <class Real, class Add>
__device__ void mix_tile(const Real* left, int stride, const Real* tile, const Add& add) {
  for (int t = 0; t < kTile; t += 4) {
    Four<Real> factors[kRows];
#pragma unroll
    for (int n = 0; n < kRows; ++n) factors[n] = load_four(left + row_index(n) * stride + t);
#pragma unroll
    for (int x = 0; x < 4; ++x) {
      const Real other = tile[(t + x) * kStride + lane_index()];
#pragma unroll
      for (int n = 0; n < kRows; ++n) add(n, factors[n].at[x], other);
    }
  }
}

/// mix_tile() of the rows in memory.left with elements [element, element + 32) of all keys that
/// they can see.
template <class Real, class Prepare, class Add>
__device__ void mix_keys(const Tokens<const Real>& keys, int element, const Place<Real>& place,
                         const Memory<Real>& memory, const Prepare& prepare, const Add& add) {
  for (int first = 0; first <= place.first; first += kTile) {
    __syncthreads();
    load_tile(keys, first, element, place.tokens, place.width, prepare, memory.tile, kStride);
    __syncthreads();
    mix_tile(memory.left + first, memory.left_stride, memory.tile, add);
  }
}

/// A tile of the head's causal rows, one key per row: left[key][query] = map(query, key, number), 0
/// for pairs that do not exist.
template <class Real, class Map>
__device__ void load_transposed(const Real* rows, int first_query, const Place<Real>& place,
                                const Map& map, Real* left) {
  const int key = place.first + lane_index();
  for (int n = 0; n < kRows; ++n) {
    const int query = first_query + row_index(n);
    left[lane_index() * kStride + row_index(n)] =
        key <= query && query < place.tokens ? map(query, key, rows[Place<Real>::row(query) + key])
                                             : Real{0};
  }
}

/// Zeros from `visible` to the end of the block's keys.
template <class Real>
__device__ void clear_hidden(Real* row, int visible, int first) {
  for (int j = lane_index(); j < first + kTile; j += kWarp) {
    if (j >= visible) row[j] = 0;
  }
}

}  // namespace nas::cuda
