#include "cuda/embedding.hpp"
#include "cuda/launch.cuh"

namespace nas::cuda {

namespace {

constexpr int kAtOnce = 4;          // stretches that a warp reads before it compares
constexpr int kListed = 2 * kWarp;  // places that a warp remembers
constexpr int kRowsAtOnce = 8;      // rows that it reads before it adds

/// Adds the rows of `count` places, in their order, to the warp's sum.
template <class Real>
__device__ void add_rows(const Real* rows, std::int64_t width, const int* places, int count,
                         Real* sum) {
  for (std::int64_t e = lane_index(); e < width; e += kWarp) {
    Real total = sum[e];
    for (int first = 0; first < count; first += kRowsAtOnce) {
      Real numbers[kRowsAtOnce];
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i) {
        if (first + i < count) numbers[i] = rows[places[first + i] * width + e];
      }
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i) {
        if (first + i < count) total += numbers[i];
      }
    }
    sum[e] = total;
  }
}

/// One block per token: that of its first occurrence sums for all of them. Every warp sums those in
/// every fourth stretch of 32 tokens, lane l the columns l, l + 32, ...
template <class Real>
__global__ void backward_kernel(Embedding embedding, const Real* by_rows, Real* by_matrix) {
  const std::int64_t model = blockIdx.y;
  const std::int64_t place = blockIdx.x;
  const std::int64_t width = embedding.width;
  const std::int64_t* tokens = embedding.tokens + model * embedding.num_tokens;
  const std::int64_t token = tokens[place];
  bool occurred = false;
  for (std::int64_t i = thread_index(); i < place; i += kThreads) {
    occurred = occurred || tokens[i] == token;
  }
  if (__syncthreads_or(occurred)) return;  // the whole block

  auto* sums = shared_memory<Real>();  // (kWarps, width), then places (kWarps, kListed)
  Real* sum = sums + warp_index() * width;
  int* places = reinterpret_cast<int*>(sums + kWarps * width) + warp_index() * kListed;
  for (std::int64_t e = lane_index(); e < width; e += kWarp) sum[e] = 0;
  const Real* rows = by_rows + model * embedding.num_tokens * width;
  const unsigned before = (1U << static_cast<unsigned>(lane_index())) - 1;
  const std::int64_t step = kWarps * kWarp;
  int count = 0;
  for (std::int64_t first = (place / kWarp + warp_index()) * kWarp; first < embedding.num_tokens;
       first += kAtOnce * step) {
    bool is_same[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const std::int64_t mine = first + i * step + lane_index();
      is_same[i] = mine < embedding.num_tokens && tokens[mine] == token;
    }
    for (int i = 0; i < kAtOnce; ++i) {
      const unsigned same = __ballot_sync(kAllLanes, is_same[i]);
      if (same == 0) continue;
      if (is_same[i]) {
        places[count + __popc(same & before)] = static_cast<int>(first + i * step) + lane_index();
      }
      count += __popc(same);
      if (count <= kListed - kWarp) continue;
      __syncwarp();
      add_rows(rows, width, places, count, sum);
      __syncwarp();
      count = 0;
    }
  }
  __syncwarp();
  add_rows(rows, width, places, count, sum);
  __syncthreads();
  Real* out = by_matrix + (model * embedding.vocabulary + token) * width;
  for (std::int64_t e = thread_index(); e < width; e += kThreads) {
    Real total = 0;
    for (int warp = 0; warp < kWarps; ++warp) total += sums[warp * width + e];
    out[e] = total;
  }
}

}  // namespace

template <class Real>
void embedding_backward(const Embedding& embedding, const Real* by_rows, Real* by_matrix,
                        Stream stream) {
  const auto shared_bytes =
      kWarps * (sizeof(Real) * static_cast<std::size_t>(embedding.width) + sizeof(int) * kListed);
  launch("embedding_backward", backward_kernel<Real>, Grid{embedding.num_tokens, embedding.models},
         shared_bytes, stream, embedding, by_rows, by_matrix);
}

template void embedding_backward(const Embedding&, const float*, float*, Stream);
template void embedding_backward(const Embedding&, const double*, double*, Stream);

}  // namespace nas::cuda
