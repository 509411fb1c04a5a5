#include <cmath>

#include "cuda/launch.cuh"
#include "cuda/layer_norm.hpp"
#include "cuda/warp.cuh"

namespace nas::cuda {

namespace {

constexpr std::int64_t kChunk = 64;  // rows that a thread sums

/// One warp per row. Sum of term(element) over it.
template <class Real, class Term>
__device__ Real sum_over_row(std::int64_t width, const Term& term) {
  Real sum = 0;
  for (std::int64_t e = lane_index(); e < width; e += kWarp) sum += term(e);
  return warp_sum(sum);
}

/// @return the warp's row of its model, possibly behind the last one.
__device__ std::int64_t row_of_warp() {
  return static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_index();
}

template <class Real>
__global__ void forward_kernel(LayerNorm<Real> norm, const Real* bias, Real epsilon, Real* y) {
  const std::int64_t model = blockIdx.y;
  if (row_of_warp() >= norm.rows) return;  // the whole warp
  const std::int64_t row = model * norm.rows + row_of_warp();
  const Real* x = norm.x + row * norm.width;
  const auto count = static_cast<Real>(norm.width);
  const Real mean = sum_over_row<Real>(norm.width, [&](auto e) { return x[e]; }) / count;
  const Real variance =
      sum_over_row<Real>(norm.width, [&](auto e) { return (x[e] - mean) * (x[e] - mean); }) / count;
  const Real inverse = 1 / std::sqrt(variance + epsilon);
  if (lane_index() == 0) {
    norm.means[row] = mean;
    norm.inverse_deviations[row] = inverse;
  }
  for (std::int64_t e = lane_index(); e < norm.width; e += kWarp) {
    y[row * norm.width + e] = norm.weight[model * norm.width + e] * ((x[e] - mean) * inverse) +
                              bias[model * norm.width + e];
  }
}

template <class Real>
__global__ void x_kernel(LayerNorm<Real> norm, const Real* dy, Real* dx) {
  const std::int64_t model = blockIdx.y;
  if (row_of_warp() >= norm.rows) return;
  const std::int64_t row = model * norm.rows + row_of_warp();
  const Real* weight = norm.weight + model * norm.width;
  const Real mean = norm.means[row];
  const Real inverse = norm.inverse_deviations[row];
  const auto count = static_cast<Real>(norm.width);
  const auto normed = [&](std::int64_t e) {
    return (norm.x[row * norm.width + e] - mean) * inverse;
  };
  const auto gradient = [&](std::int64_t e) { return dy[row * norm.width + e] * weight[e]; };
  const Real plain = sum_over_row<Real>(norm.width, gradient) / count;
  const Real along =
      sum_over_row<Real>(norm.width, [&](auto e) { return gradient(e) * normed(e); }) / count;
  for (std::int64_t e = lane_index(); e < norm.width; e += kWarp) {
    dx[row * norm.width + e] = inverse * (gradient(e) - plain - normed(e) * along);
  }
}

/// Partial sums (R, chunks, 2, D): one thread per element of a chunk of rows.
template <class Real>
__global__ void partial_kernel(LayerNorm<Real> norm, const Real* dy, Real* partial) {
  const std::int64_t e = static_cast<std::int64_t>(blockIdx.x) * kThreads + thread_index();
  if (e >= norm.width) return;
  const std::int64_t chunk = blockIdx.y;
  const std::int64_t model = blockIdx.z;
  const std::int64_t end = (chunk + 1) * kChunk < norm.rows ? (chunk + 1) * kChunk : norm.rows;
  Real weight = 0;
  Real bias = 0;
  for (std::int64_t i = chunk * kChunk; i < end; ++i) {
    const std::int64_t row = model * norm.rows + i;
    const Real g = dy[row * norm.width + e];
    weight += g * ((norm.x[row * norm.width + e] - norm.means[row]) * norm.inverse_deviations[row]);
    bias += g;
  }
  Real* sums = partial + (model * gridDim.y + chunk) * 2 * norm.width + e;
  sums[0] = weight;
  sums[norm.width] = bias;
}

template <class Real>
__global__ void sums_kernel(const Real* partial, std::int64_t chunks, std::int64_t width,
                            Real* dweight, Real* dbias) {
  const std::int64_t e = static_cast<std::int64_t>(blockIdx.x) * kThreads + thread_index();
  if (e >= width) return;
  const std::int64_t model = blockIdx.y;
  Real weight = 0;
  Real bias = 0;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const Real* sums = partial + (model * chunks + chunk) * 2 * width + e;
    weight += sums[0];
    bias += sums[width];
  }
  dweight[model * width + e] = weight;
  dbias[model * width + e] = bias;
}

std::int64_t pieces(std::int64_t size, std::int64_t piece) { return (size + piece - 1) / piece; }

}  // namespace

template <class Real>
std::int64_t layer_norm_scratch_size(const LayerNorm<Real>& rows) {
  return rows.models * pieces(rows.rows, kChunk) * 2 * rows.width;
}

template <class Real>
void layer_norm(const LayerNorm<Real>& rows, const Real* bias, double epsilon, Real* y,
                Stream stream) {
  launch("layer_norm", forward_kernel<Real>, Grid{pieces(rows.rows, kWarps), rows.models}, 0,
         stream, rows, bias, static_cast<Real>(epsilon), y);
}

template <class Real>
void layer_norm_backward(const LayerNorm<Real>& rows, const LayerNormGradients<Real>& gradients,
                         Stream stream) {
  const std::int64_t chunks = pieces(rows.rows, kChunk);
  const std::int64_t columns = pieces(rows.width, kThreads);
  launch("layer_norm_backward, partial sums", partial_kernel<Real>,
         Grid{columns, chunks, rows.models}, 0, stream, rows, gradients.y, gradients.scratch);
  launch("layer_norm_backward, x", x_kernel<Real>, Grid{pieces(rows.rows, kWarps), rows.models}, 0,
         stream, rows, gradients.y, gradients.x);
  launch("layer_norm_backward, sums", sums_kernel<Real>, Grid{columns, rows.models}, 0, stream,
         gradients.scratch, chunks, rows.width, gradients.weight, gradients.bias);
}

#define NAS_LAYER_NORM(Real)                                                                 \
  template std::int64_t layer_norm_scratch_size(const LayerNorm<Real>&);                     \
  template void layer_norm(const LayerNorm<Real>&, const Real*, double, Real*, Stream);      \
  template void layer_norm_backward(const LayerNorm<Real>&, const LayerNormGradients<Real>&, \
                                    Stream);
NAS_LAYER_NORM(float)
NAS_LAYER_NORM(double)
#undef NAS_LAYER_NORM

}  // namespace nas::cuda
