#include <stdexcept>

#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/dropout.cuh"
#include "kernels/cuda/elementwise.hpp"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/pack.cuh"

namespace nas::cuda {

namespace {

struct Drop {
  static constexpr bool kOfTwo = false;
  template <class Real>
  __device__ Real operator()(Real factor, Real x, Real /*y*/) const {
    return factor * x;
  }
};

struct AddDropped {
  static constexpr bool kOfTwo = true;
  template <class Real>
  __device__ Real operator()(Real factor, Real x, Real residual) const {
    return residual + factor * x;
  }
};

struct Gelu {
  static constexpr bool kOfTwo = false;
  template <class Real>
  __device__ Real operator()(Real factor, Real x, Real /*y*/) const {
    return factor * x * normal(x).distribution;
  }
};

struct GeluBackward {
  static constexpr bool kOfTwo = true;
  template <class Real>
  __device__ Real operator()(Real factor, Real x, Real gradient) const {
    const Normal<Real> at = normal(x);
    return factor * gradient * (at.distribution + x * at.density);
  }
};

constexpr std::int64_t kChunk = 32;  // rows of a block
constexpr int kAtOnce = 4;           // rows that a warp reads before it computes

/// How many blocks a multiprocessor shall have at once: in float 102 registers per thread, which
/// the compiler would exceed by computing what it has read in any order.
template <class Real>
[[maybe_unused]] constexpr int kBlocks = sizeof(Real) == sizeof(float) ? 5 : 2;

/// A block has a chunk of the rows of a model, a warp each fourth of them, a lane N columns.
template <bool kSums, int N, class Of, class Real>
__global__ void __launch_bounds__(kThreads, kBlocks<Real>) rows_kernel(Of of, RowMap<Real> map) {
  constexpr int kColumns = kWarp * N;
  const std::int64_t tiles = (map.width + kColumns - 1) / kColumns;
  const std::int64_t chunk = blockIdx.x / tiles;
  const std::int64_t tile = blockIdx.x % tiles * kColumns;
  const std::int64_t model = blockIdx.y;
  const std::int64_t column = tile + lane_index() * N;
  const std::int64_t end = (chunk + 1) * kChunk < map.rows ? (chunk + 1) * kChunk : map.rows;
  const std::int64_t of_model = model * map.rows * map.width;
  DropoutFactors<Real> factors(map.dropout, model);
  Pack<Real, N> bias{};
  Pack<Real, N> sums{};
  const bool inside = column < map.width;
  if (map.bias != nullptr && inside) bias = load_pack<N>(map.bias + model * map.width + column);
  std::int64_t first = chunk * kChunk + warp_index();
  for (; inside && first < end; first += kAtOnce * kWarps) {
    Pack<Real, N> x[kAtOnce]{};
    Pack<Real, N> y[kAtOnce]{};
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const std::int64_t row = first + i * kWarps;
      if (row >= end) break;
      x[i] = load_pack<N>(map.x, of_model + row * map.width + column);
      if constexpr (Of::kOfTwo) y[i] = load_pack<N>(map.y, of_model + row * map.width + column);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const std::int64_t row = first + i * kWarps;
      if (row >= end) break;
      const std::int64_t element = row * map.width + column;
      const Pack<Real, N> factor = factors.template pack<N>(element);
      Pack<Real, N> out;
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const Real second = Of::kOfTwo ? y[i].at[j] : Real{0};
        out.at[j] = of(factor.at[j], x[i].at[j] + bias.at[j], second);
        if constexpr (kSums) sums.at[j] += out.at[j];
      }
      if (!map.out.is_null()) store_pack<N>(out, map.out, of_model + element);
    }
  }
  if constexpr (kSums) {
    auto* of_warps = shared_memory<Real>();  // (kWarps, kColumns)
    store_pack<N>(sums, of_warps + warp_index() * kColumns + lane_index() * N);
    __syncthreads();
    const int mine = thread_index();
    if (mine >= kColumns || tile + mine >= map.width) return;
    Real sum = 0;
    for (int warp = 0; warp < kWarps; ++warp) sum += of_warps[warp * kColumns + mine];
    map.scratch[(model * (gridDim.x / tiles) + chunk) * map.width + tile + mine] = sum;
  }
}

template <int N, class Of, class Real>
void run(const char* name, Of of, const RowMap<Real>& map, Stream stream) {
  const std::int64_t chunks = pieces(map.rows, kChunk);
  const Grid grid{pieces(map.width, kWarp * N) * chunks, map.models};
  if (map.sums == nullptr) {
    launch(name, rows_kernel<false, N, Of, Real>, grid, 0, stream, of, map);
    return;
  }
  launch(name, rows_kernel<true, N, Of, Real>, grid, sizeof(Real) * kThreads * N, stream, of, map);
  add_slots<Real>(name, map.scratch, map.models, chunks, map.width, map.width, map.sums, nullptr,
                  stream);
}

template <class Of, class Real>
void run(const char* name, Of of, const RowMap<Real>& map, Stream stream) {
  const bool wide = map.width % kPack == 0 && map.dropout.first % kPack == 0 &&
                    is_aligned(map.x.data) && is_aligned(map.y.data) && is_aligned(map.bias) &&
                    is_aligned(map.out.data);
  wide ? run<kPack>(name, of, map, stream) : run<1>(name, of, map, stream);
}

}  // namespace

template <class Real>
std::int64_t map_scratch_size(const RowMap<Real>& rows) {
  return rows.models * pieces(rows.rows, kChunk) * rows.width;
}

template <class Real>
void map_rows(const RowMap<Real>& rows, Stream stream) {
  switch (rows.map) {
    case Map::drop:
      return run("drop", Drop(), rows, stream);
    case Map::add_dropped:
      return run("add_dropped", AddDropped(), rows, stream);
    case Map::gelu:
      return run("gelu", Gelu(), rows, stream);
    case Map::gelu_backward:
      return run("gelu_backward", GeluBackward(), rows, stream);
    case Map::swiglu:
    case Map::swiglu_backward:
      break;
  }
  throw std::invalid_argument("map_rows: there is no kernel of SwiGLU");
}

#define NAS_MAP_ROWS(Real)                                     \
  template std::int64_t map_scratch_size(const RowMap<Real>&); \
  template void map_rows(const RowMap<Real>&, Stream);
NAS_MAP_ROWS(float)
NAS_MAP_ROWS(double)
#undef NAS_MAP_ROWS

}  // namespace nas::cuda
