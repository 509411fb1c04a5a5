// One block per row of logits. Where the row fits into the registers of 512 threads it is read once and
// written once; else there are three passes over it (largest, sum, gradient), of which the first reads
// memory and the others the caches: ten thousand logits are 40 KB.

#include <cmath>
#include <limits>

#include "kernels/cuda/cross_entropy.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/warp.cuh"

namespace nas::cuda {

namespace {

/// What is needed of a row that something is asked of.
template <class Real>
struct RowSums {
  Real top;
  Real sum;  ///< of e^(x - top)

  template <class Logits>
  __device__ RowSums(const Logits* row, std::int64_t size, Real* scratch)
      : top(-std::numeric_limits<Real>::infinity()), sum(0) {
    for (std::int64_t i = thread_index(); i < size; i += kThreads) {
      top = row[i] > top ? row[i] : top;
    }
    top = block_max(top, scratch);
    for (std::int64_t i = thread_index(); i < size; i += kThreads) {
      sum += exponential(row[i] - top);
    }
    sum = block_sum(sum, scratch);
  }

  /// log(sum) + top - x: adding the logarithm to the largest would round it to the logits'
  /// precision.
  __device__ double nll(Real x) const {
    return std::log(static_cast<double>(sum)) + (static_cast<double>(top) - static_cast<double>(x));
  }
};

template <class Real>
__global__ void gradient_kernel(CrossEntropy<Real> task, const Real* weights, double* nll) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * task.rows + blockIdx.x;
  const std::int64_t target = task.targets[row];
  const Real weight = weights[blockIdx.y];
  Real* logits = task.logits + row * task.vocabulary;
  if (target < 0) {
    for (std::int64_t i = thread_index(); i < task.vocabulary; i += kThreads) logits[i] = 0;
    if (thread_index() == 0) nll[row] = 0;
    return;
  }
  const RowSums<Real> sums(logits, task.vocabulary, shared_memory<Real>());
  if (thread_index() == 0) nll[row] = sums.nll(logits[target]);
  __syncthreads();  // before the target's logit is overwritten
  const Real factor = weight / sums.sum;
  for (std::int64_t i = thread_index(); i < task.vocabulary; i += kThreads) {
    const Real share = factor * exponential(logits[i] - sums.top);
    logits[i] = i == target ? share - weight : share;
  }
}

constexpr int kWideWarps = 16;  // of a block that keeps its row
constexpr int kWideThreads = kWideWarps * kWarp;

struct alignas(16) Four {
  float at[4];
};

/// gradient_kernel() of rows of at most 4 kFours kWideThreads logits, a multiple of four.
template <int kFours>
__global__ void __launch_bounds__(kWideThreads, 2)
    kept_gradient_kernel(CrossEntropy<float> task, const float* weights, double* nll) {
  auto* scratch = shared_memory<float>();
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * task.rows + blockIdx.x;
  const std::int64_t target = task.targets[row];
  const float weight = target < 0 ? 0 : weights[blockIdx.y];
  auto* fours = reinterpret_cast<Four*>(task.logits + row * task.vocabulary);
  const std::int64_t count = task.vocabulary / 4;
  Four mine[static_cast<std::size_t>(kFours)];
  float top = -std::numeric_limits<float>::infinity();
#pragma unroll
  for (int n = 0; n < kFours; ++n) {
    const std::int64_t i = n * kWideThreads + thread_index();
    if (i >= count || target < 0) continue;
    mine[n] = fours[i];
#pragma unroll
    for (const float x : mine[n].at) top = x > top ? x : top;
  }
  top = block_max<float, kWideWarps>(top, scratch);
  float sum = 0;
#pragma unroll
  for (int n = 0; n < kFours; ++n) {
    const std::int64_t i = n * kWideThreads + thread_index();
    if (i >= count || target < 0) continue;
      // The owner of the target's logit says it, and subtracts 1.
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (4 * i + k == target) {
        nll[row] = static_cast<double>(top) - static_cast<double>(mine[n].at[k]);
      }
    }
#pragma unroll
    for (float& x : mine[n].at) {
      x = exponential(x - top);
      sum += x;
    }
  }
  sum = block_sum<float, kWideWarps>(sum, scratch);
  const float factor = weight / sum;
#pragma unroll
  for (int n = 0; n < kFours; ++n) {
    const std::int64_t i = n * kWideThreads + thread_index();
    if (i >= count) continue;
    Four gradient{};
    if (target >= 0) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float share = factor * mine[n].at[k];
        gradient.at[k] = 4 * i + k == target ? share - weight : share;
      }
    }
    fours[i] = gradient;
  }
  if (target < 0) {
    if (thread_index() == 0) nll[row] = 0;
  } else if (thread_index() == static_cast<int>(target / 4 % kWideThreads)) {
    nll[row] += std::log(static_cast<double>(sum));
  }
}

/// @return whether rows fit into registers: then their gradients are enqueued.
template <int kFours>
bool keeps_rows(const CrossEntropy<float>& task, const float* weights, double* nll, Stream stream) {
  if (task.vocabulary > std::int64_t{4} * kFours * kWideThreads) return false;
  launch("cross_entropy_gradient", kept_gradient_kernel<kFours>,
         Grid{task.rows, task.models, 1, kWideThreads}, std::size_t{kWideWarps} * sizeof(float),
         stream, task, weights, nll);
  return true;
}

bool keeps_rows(const CrossEntropy<float>& task, const float* weights, double* nll, Stream stream) {
  return task.vocabulary % 4 == 0 && is_aligned(task.logits) &&
         (keeps_rows<1>(task, weights, nll, stream) || keeps_rows<3>(task, weights, nll, stream) ||
          keeps_rows<5>(task, weights, nll, stream));
}
bool keeps_rows(const CrossEntropy<double>& /*task*/, const double* /*weights*/, double* /*nll*/,
                Stream /*stream*/) {
  return false;
}

template <class Real>
__global__ void score_kernel(CrossEntropy<const Real> task, double* nll, bool* correct) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * task.rows + blockIdx.x;
  const std::int64_t target = task.targets[row];
  const Real* logits = task.logits + row * task.vocabulary;
  if (target < 0) {
    if (thread_index() == 0) {
      nll[row] = 0;
      correct[row] = false;
    }
    return;
  }
  const RowSums<Real> sums(logits, task.vocabulary, shared_memory<Real>());
  bool is_beaten = logits[target] != sums.top;
  for (std::int64_t i = thread_index(); i < target; i += kThreads) {
    is_beaten |= logits[i] == sums.top;
  }
  const bool is_wrong = __syncthreads_or(is_beaten) != 0;
  if (thread_index() == 0) {
    nll[row] = sums.nll(logits[target]);
    correct[row] = !is_wrong;
  }
}

template <class Real>
__global__ void scale_kernel(Real* x, std::int64_t size, const Real* factors) {
  const Real factor = factors[blockIdx.y];
  if (factor == 1) return;
  x += static_cast<std::int64_t>(blockIdx.y) * size;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + thread_index(); i < size;
       i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    x[i] *= factor;
  }
}

template <class Real>
__global__ void weights_kernel(const std::int64_t* targets, std::int64_t rows, Real* weights) {
  const std::int64_t model = blockIdx.x;
  double count = 0;
  for (std::int64_t i = thread_index(); i < rows; i += kThreads) {
    count += targets[model * rows + i] >= 0 ? 1 : 0;
  }
  count = block_sum(count, shared_memory<double>());
  if (thread_index() == 0) weights[model] = static_cast<Real>(1 / count);
}

template <class Real>
__global__ void sums_kernel(const double* nll, std::int64_t rows, const Real* weights, Real* sums) {
  const std::int64_t model = blockIdx.x;
  double sum = 0;
  for (std::int64_t i = thread_index(); i < rows; i += kThreads) sum += nll[model * rows + i];
  sum = block_sum(sum, shared_memory<double>());
  if (thread_index() == 0) {
    sums[model] = static_cast<Real>(static_cast<double>(weights[model]) * sum);
  }
}

}  // namespace

template <class Real>
void mean_weights(const std::int64_t* targets, std::int64_t models, std::int64_t rows,
                  Real* weights, Stream stream) {
  launch("mean_weights", weights_kernel<Real>, Grid{models}, kWarps * sizeof(double), stream,
         targets, rows, weights);
}

template <class Real>
void cross_entropy_gradient(const CrossEntropy<Real>& task, const Real* weights, double* nll,
                            Stream stream) {
  if (keeps_rows(task, weights, nll, stream)) return;
  launch("cross_entropy_gradient", gradient_kernel<Real>, Grid{task.rows, task.models},
         kWarps * sizeof(Real), stream, task, weights, nll);
}

template <class Real>
void cross_entropy(const CrossEntropy<const Real>& task, double* nll, bool* correct,
                   Stream stream) {
  launch("cross_entropy", score_kernel<Real>, Grid{task.rows, task.models}, kWarps * sizeof(Real),
         stream, task, nll, correct);
}

template <class Real>
void weighted_sums(const double* nll, std::int64_t models, std::int64_t rows, const Real* weights,
                   Real* sums, Stream stream) {
  launch("weighted_sums", sums_kernel<Real>, Grid{models}, kWarps * sizeof(double), stream, nll,
         rows, weights, sums);
}

template <class Real>
void scale_models(Real* x, std::int64_t models, std::int64_t size, const Real* factors,
                  Stream stream) {
  constexpr std::int64_t kOfBlock = std::int64_t{16} * kThreads;
  launch("scale_models", scale_kernel<Real>, Grid{pieces(size, kOfBlock), models}, 0, stream, x,
         size, factors);
}

#define NAS_CROSS_ENTROPY(Real)                                                                  \
  template void mean_weights(const std::int64_t*, std::int64_t, std::int64_t, Real*, Stream);    \
  template void cross_entropy_gradient(const CrossEntropy<Real>&, const Real*, double*, Stream); \
  template void cross_entropy<Real>(const CrossEntropy<const Real>&, double*, bool*, Stream);    \
  template void scale_models(Real*, std::int64_t, std::int64_t, const Real*, Stream);            \
  template void weighted_sums(const double*, std::int64_t, std::int64_t, const Real*, Real*,     \
                              Stream);
NAS_CROSS_ENTROPY(float)
NAS_CROSS_ENTROPY(double)
#undef NAS_CROSS_ENTROPY

}  // namespace nas::cuda
