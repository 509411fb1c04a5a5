// Products of tiles: a block makes 32 x 32 sums, a thread eight of them, by lanes or by tensor cores.
// Each way has
//   row(n), column(n)                  where sum n of the calling thread is in its tile;
//   add_pairs(score, rows, stride, tile, begin, sums)  adds what elements [begin, begin + 32) of rows
//                                      and of the tile's rows contribute to their scores;
//   mix(left, stride, tile, sums, add) sums += left tile, or add(n, factor, number of the tile) for
//                                      each product;
//   load_left(), kStride               a tile of causal rows as mix() takes it, keys first, and the
//                                      stride of tiles there;
//   wait()                             until all that threads wrote of a warp's rows can be read;
//   for_rows(x, scratch, use)          use(row, sum of x over the row), in one thread.
#pragma once

#include "kernels/cuda/attention_tiles.cuh"
#include "kernels/cuda/tensor_cores.cuh"
#include "kernels/cuda/warp.cuh"

namespace nas::cuda {

/// Each thread has a column for its warp's 8 rows: 32 multiplications for 9 reads of four numbers, which
/// keeps arithmetic and shared memory about equally busy.
struct Lanes {
  static constexpr int kStride = kTile + 4;

  __device__ static int row(int n) { return row_index(n); }
  __device__ static int column(int /*n*/) { return lane_index(); }

  template <class Score, class Real>
  __device__ static void add_pairs(const Score& score, const Real* rows, int stride,
                                   const Real* tile, int begin, Real (&sums)[kSums]) {
    rows += row(0) * stride;
    for (int e = 0; e < kTile; e += 4) {
      const Four<Real> other = load_four(tile + lane_index() * kRowStride + e);
#pragma unroll
      for (int n = 0; n < kSums; ++n) {
        const Four<Real> own = load_four(rows + n * stride + e);
#pragma unroll
        for (int x = 0; x < 4; ++x) score.add(sums[n], own.at[x], other.at[x], begin + e + x);
      }
    }
  }

  template <class Real, class Add>
  __device__ static void mix(const Real* left, int stride, const Real* tile,
                             Real (&/*sums*/)[kSums], const Add& add) {
    left += row(0) * stride;
    for (int t = 0; t < kTile; t += 4) {
      Four<Real> factors[kSums];
#pragma unroll
      for (int n = 0; n < kSums; ++n) factors[n] = load_four(left + n * stride + t);
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        const Real other = tile[(t + x) * kStride + lane_index()];
#pragma unroll
        for (int n = 0; n < kSums; ++n) add(n, factors[n].at[x], other);
      }
    }
  }

  /// left[key][query] = map(query, key, number), 0 for pairs that do not exist.
  template <class Real, class Map>
  __device__ static void load_left(const Real* rows, int first_query, const Place<Real>& place,
                                   const Map& map, Real* left) {
    for_causal_tile(rows, first_query, place, map,
                    [&](int query, int key, Real number) { left[key * kStride + query] = number; });
  }
  template <class Real, class Add>
  __device__ static void mix_left(const Real* left, const Real* tile, Real (&sums)[kSums],
                                  const Add& add) {
    mix(left, kStride, tile, sums, add);
  }

  __device__ static void wait() { __syncwarp(); }

  template <class Real, class Use>
  __device__ static void for_rows(const Real (&x)[kSums], Real* /*scratch*/, const Use& use) {
#pragma unroll
    for (int n = 0; n < kSums; ++n) {
      const Real sum = warp_sum(x[n]);
      if (lane_index() == 0) use(row(n), sum);
    }
  }
};

/// A warp has 16 rows and 16 columns: two sums of mma.sync side by side. Factors are TensorFloat-32:
/// what `prepare` has rounded and, of `left`, what is rounded as it is read. Lanes read words of
/// different banks: numbers whose rows are the fragment's lie at kRowStride, the others at kStride.
struct TensorCores {
  static constexpr int kStride = kTile + 8;

  __device__ static int row(int n) {
    return warp_index() / 2 * 16 + lane_index() / 4 + n % 4 / 2 * 8;
  }
  __device__ static int column(int n) {
    return warp_index() % 2 * 16 + n / 4 * 8 + lane_index() % 4 * 2 + n % 2;
  }

  template <class Score>
  __device__ static void add_pairs(const Score& /*score*/, const float* rows, int stride,
                                   const float* tile, int /*begin*/, float (&sums)[kSums]) {
    multiply(
        sums, [&](int m, int k) { return rows[m * stride + k]; },
        [&](int k, int n) { return tile[n * kRowStride + k]; });
  }

  template <class Add>
  __device__ static void mix(const float* left, int stride, const float* tile, float (&sums)[kSums],
                             const Add& /*add*/) {
    multiply(
        sums, [&](int m, int k) { return round_to_tf32(left[m * stride + k]); },
        [&](int k, int n) { return tile[k * kStride + n]; });
  }

  /// left[query][key]: read by columns.
  template <class Map>
  __device__ static void load_left(const float* rows, int first_query, const Place<float>& place,
                                   const Map& map, float* left) {
    for_causal_tile(rows, first_query, place, map, [&](int query, int key, float number) {
      left[query * kStride + key] = round_to_tf32(number);
    });
  }
  template <class Add>
  __device__ static void mix_left(const float* left, const float* tile, float (&sums)[kSums],
                                  const Add& /*add*/) {
    multiply(
        sums, [&](int m, int k) { return left[k * kStride + m]; },
        [&](int k, int n) { return tile[k * kStride + n]; });
  }

  __device__ static void wait() { __syncthreads(); }

  template <class Use>
  __device__ static void for_rows(const float (&x)[kSums], float* scratch, const Use& use) {
    __syncthreads();  // it has been read
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int n = 2 * half;
      const float sum = sum_of_quad((x[n] + x[n + 1]) + (x[n + 4] + x[n + 5]));
      if (lane_index() % 4 == 0) scratch[warp_index() % 2 * kTile + row(n)] = sum;
    }
    __syncthreads();
    if (thread_index() < kTile) {
      use(thread_index(), scratch[thread_index()] + scratch[kTile + thread_index()]);
    }
  }

 private:
  /// Adds the products of left(row, k) and right(k, column), k in [0, 32).
  template <class Left, class Right>
  __device__ static void multiply(float (&sums)[kSums], const Left& left, const Right& right) {
    const int g = lane_index() / 4;
    const int t = lane_index() % 4;
    const int m = warp_index() / 2 * 16 + g;
    const int n = warp_index() % 2 * 16 + g;
    float halves[2][4];
#pragma unroll
    for (int i = 0; i < kSums; ++i) halves[i / 4][i % 4] = sums[i];
#pragma unroll
    for (int k = 0; k < kTile; k += 8) {
      const std::uint32_t a[4] = {bits_of(left(m, k + t)), bits_of(left(m + 8, k + t)),
                                  bits_of(left(m, k + t + 4)), bits_of(left(m + 8, k + t + 4))};
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        multiply_tf32(halves[half], a, bits_of(right(k + t, n + 8 * half)),
                      bits_of(right(k + t + 4, n + 8 * half)));
      }
    }
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums[i] = halves[i / 4][i % 4];
  }
};

/// For each pair of a query of the block and a key of a tile that is seen, sum by sum: use(n, key, its score), of
/// queries' vectors in memory.vectors. Ends with wait().
template <class Score, class Real, class Use>
__device__ void for_pairs(const Score& score, const Tokens<const Real>& keys,
                          const Place<Real>& place, const Memory<Real>& memory, const Use& use) {
  using Products = typename Score::Products;
  for (int first = 0; first <= place.first; first += kTile) {
    if (!place.is_seen(place.first, first)) continue;
    Real sums[kSums] = {};
    for (int begin = 0; begin < place.width; begin += kTile) {
      __syncthreads();
      load_tile(score, keys, first, begin, place.tokens, place.width, memory.tile, kRowStride);
      __syncthreads();
      Products::add_pairs(score, memory.vectors + begin, memory.vector_stride, memory.tile, begin,
                          sums);
    }
#pragma unroll
    for (int n = 0; n < kSums; ++n) use(n, first + Products::column(n), sums[n]);
  }
  Products::wait();
}

/// Products::mix() of the rows in memory.left with elements [element, element + 32) of all tiles of keys
/// that are seen.
template <class Score, class Real, class Add>
__device__ void mix_keys(const Score& score, const Tokens<const Real>& keys, int element,
                         const Place<Real>& place, const Memory<Real>& memory, Real (&sums)[kSums],
                         const Add& add) {
  using Products = typename Score::Products;
  for (int first = 0; first <= place.first; first += kTile) {
    if (!place.is_seen(place.first, first)) continue;
    __syncthreads();
    load_tile(score, keys, first, element, place.tokens, place.width, memory.tile,
              Products::kStride);
    __syncthreads();
    Products::mix(memory.left + first, memory.left_stride, memory.tile, sums, add);
  }
}

}  // namespace nas::cuda
