#include "kernels/cuda/embedding.hpp"
#include "kernels/cuda/launch.cuh"

namespace nas::cuda {

namespace {

constexpr int kRowsAtOnce = 8;  // that a warp reads before it adds

/// One block per place of the sorted tokens: the first of a token sums for all of them. Every warp adds
/// every fourth row, lane l the columns l, l + 32, ...
template <class Real>
__global__ void backward_kernel(Embedding embedding, const Real* by_rows, Real* by_matrix) {
  const std::int64_t model = blockIdx.y;
  const std::int64_t first = blockIdx.x;
  const std::int64_t width = embedding.width;
  const std::int32_t* tokens = embedding.tokens + model * embedding.num_tokens;
  const std::int64_t* places = embedding.places + model * embedding.num_tokens;
  const std::int32_t token = tokens[first];
  if (first > 0 && tokens[first - 1] == token) return;  // the whole block

  Real* sums = shared_memory<Real>();  // (kWarps, width)
  Real* sum = sums + warp_index() * width;
  const Real* rows = by_rows + model * embedding.num_tokens * width;
  for (std::int64_t e = lane_index(); e < width; e += kWarp) sum[e] = 0;
  bool is_same = true;
  for (std::int64_t next = first + warp_index(); is_same; next += kWarps * kRowsAtOnce) {
    std::int64_t place[kRowsAtOnce];
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const std::int64_t at = next + i * kWarps;
      is_same = is_same && at < embedding.num_tokens && tokens[at] == token;
      place[i] = is_same ? places[at] : -1;
    }
    for (std::int64_t e = lane_index(); e < width; e += kWarp) {
      Real numbers[kRowsAtOnce];
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i) {
        if (place[i] >= 0) numbers[i] = rows[place[i] * width + e];
      }
      Real total = sum[e];
#pragma unroll
      for (int i = 0; i < kRowsAtOnce; ++i) {
        if (place[i] >= 0) total += numbers[i];
      }
      sum[e] = total;
    }
  }
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
  launch("embedding_backward", backward_kernel<Real>, Grid{embedding.num_tokens, embedding.models},
         kWarps * sizeof(Real) * static_cast<std::size_t>(embedding.width), stream, embedding,
         by_rows, by_matrix);
}

template void embedding_backward(const Embedding&, const float*, float*, Stream);
template void embedding_backward(const Embedding&, const double*, double*, Stream);

}  // namespace nas::cuda
