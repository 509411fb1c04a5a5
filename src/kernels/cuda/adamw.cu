#include <cmath>

#include "kernels/cuda/adamw.hpp"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/warp.cuh"

namespace nas::cuda {

namespace {

/// What the elements of a model are updated by.
struct Update {
  double gradient_factor;
  double decay_factor;  ///< of parameters that decay
  double rate;          ///< learning rate / (1 - b1^t)
  double root;          ///< sqrt(1 - b2^t)
};

/// Sums of squares of the pieces, then the models' updates.
constexpr std::int64_t kUpdateNumbers = sizeof(Update) / sizeof(double);

template <class Real>
Update* updates_of(const AdamW<Real>& step) {
  return reinterpret_cast<Update*>(step.scratch + step.num_pieces);
}

template <class Real>
__global__ void squares_kernel(AdamW<Real> step) {
  const std::int64_t index = blockIdx.x;
  const Piece<Real> piece = step.pieces[index];
  double sum = 0;
  if (piece.gradient != nullptr) {
    for (std::int64_t i = thread_index(); i < piece.size; i += kThreads) {
      const auto g = static_cast<double>(piece.gradient[i]);
      sum += g * g;
    }
  }
  sum = block_sum(sum, shared_memory<double>());
  if (thread_index() == 0) step.scratch[index] = sum;
}

template <class Real>
__global__ void updates_kernel(AdamW<Real> step, Update* updates) {
  const std::int64_t model = blockIdx.x;
  double sum = 0;
  for (std::int64_t i = step.first_pieces[model] + thread_index(); i < step.first_pieces[model + 1];
       i += kThreads) {
    sum += step.scratch[i];
  }
  const double norm = std::sqrt(block_sum(sum, shared_memory<double>()));
  if (thread_index() != 0) return;
  const std::int64_t number = ++step.steps[model];
  const double factor = step.clip_norms[model] / (norm + 1e-6);
  const double rate = step.learning_rates[model];
  const auto t = static_cast<double>(number);
  updates[model] = {factor > 1 ? 1 : factor, 1 - rate * step.weight_decays[model],
                    rate / (1 - std::pow(step.constants.beta1, t)),
                    std::sqrt(1 - std::pow(step.constants.beta2, t))};
}

template <class Real>
__global__ void update_kernel(AdamW<Real> step, const Update* updates) {
  const Piece<Real> piece = step.pieces[blockIdx.x];
  if (piece.gradient == nullptr) return;
  const Update update = updates[piece.model];
  const auto gradient_factor = static_cast<Real>(update.gradient_factor);
  const auto decay_factor = static_cast<Real>(piece.decays ? update.decay_factor : 1.0);
  const auto rate = static_cast<Real>(update.rate);
  const auto root = static_cast<Real>(update.root);
  const auto beta1 = static_cast<Real>(step.constants.beta1);
  const auto beta2 = static_cast<Real>(step.constants.beta2);
  const auto rest1 = static_cast<Real>(1 - step.constants.beta1);
  const auto rest2 = static_cast<Real>(1 - step.constants.beta2);
  const auto epsilon = static_cast<Real>(step.constants.epsilon);
  for (std::int64_t i = thread_index(); i < piece.size; i += kThreads) {
    const Real g = gradient_factor * piece.gradient[i];
    const Real m = piece.first[i] = beta1 * piece.first[i] + rest1 * g;
    const Real v = piece.second[i] = beta2 * piece.second[i] + rest2 * g * g;
    piece.parameter[i] =
        decay_factor * piece.parameter[i] - rate * m / (std::sqrt(v) / root + epsilon);
  }
}

}  // namespace

template <class Real>
std::int64_t adamw_scratch_size(const AdamW<Real>& step) {
  return step.num_pieces + step.models * kUpdateNumbers;
}

template <class Real>
void adamw(const AdamW<Real>& step, Stream stream) {
  constexpr std::size_t kSumBytes = kWarps * sizeof(double);
  Update* updates = updates_of(step);
  launch("adamw, squares", squares_kernel<Real>, Grid{step.num_pieces}, kSumBytes, stream, step);
  launch("adamw, norms", updates_kernel<Real>, Grid{step.models}, kSumBytes, stream, step, updates);
  launch("adamw", update_kernel<Real>, Grid{step.num_pieces}, 0, stream, step, updates);
}

#define NAS_ADAMW(Real)                                         \
  template std::int64_t adamw_scratch_size(const AdamW<Real>&); \
  template void adamw(const AdamW<Real>&, Stream);
NAS_ADAMW(float)
NAS_ADAMW(double)
#undef NAS_ADAMW

}  // namespace nas::cuda
