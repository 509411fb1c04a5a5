#include "cuda/embedding.hpp"
#include "cuda/launch.cuh"

namespace nas::cuda {

namespace {

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

  auto* sums = shared_memory<Real>();  // (kWarps, width)
  Real* sum = sums + warp_index() * width;
  for (std::int64_t e = lane_index(); e < width; e += kWarp) sum[e] = 0;
  const std::int64_t step = kWarps * kWarp;
  for (std::int64_t first = (place / kWarp + warp_index()) * kWarp; first < embedding.num_tokens;
       first += step) {
    const std::int64_t mine = first + lane_index();
    unsigned same = __ballot_sync(kAllLanes, mine < embedding.num_tokens && tokens[mine] == token);
    for (; same != 0; same &= same - 1) {
      const std::int64_t row = model * embedding.num_tokens + first + __ffs(same) - 1;
      for (std::int64_t e = lane_index(); e < width; e += kWarp) sum[e] += by_rows[row * width + e];
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
  const auto shared_bytes = sizeof(Real) * kWarps * static_cast<std::size_t>(embedding.width);
  launch("embedding_backward", backward_kernel<Real>, Grid{embedding.num_tokens, embedding.models},
         shared_bytes, stream, embedding, by_rows, by_matrix);
}

template void embedding_backward(const Embedding&, const float*, float*, Stream);
template void embedding_backward(const Embedding&, const double*, double*, Stream);

}  // namespace nas::cuda
