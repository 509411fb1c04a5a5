#pragma once

#include <cstdint>

#include "kernels/cuda/stream.hpp"

namespace nas::cuda {

/// The output layers of R models with their loss on tensor cores: logits H E' of N tokens and V words
/// are made twice and never written. With w the model's weight and P = softmax(H E'), by rows,
///
///   nll = log sum_v e^(h . E_v) - h . E_target,  dL/dH = w (P E - E_target),
///   dL/dE = w (P - one_hot(target))' H,
///
/// and 0 of rows where nothing is asked. Factors, P among them, are bfloat16 or TensorFloat-32
/// numbers; sums are float32, in a fixed order. 8 N V D floating-point operations a model, on devices
/// of compute capability 8.0.
enum class Factors : std::uint8_t { bfloat16, tf32 };

/// Sizes, and memory of the device: what is read and what is written.
struct OutputLoss {
  std::int64_t models = 0;
  std::int64_t tokens = 0;
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;
  Factors factors = Factors::tf32;
  /// As many models are taken at a time as have room in this scratch, one at least.
  std::int64_t most_scratch_bytes = std::int64_t{1} << 29;

  const float* features = nullptr;        ///< H (R, N, D)
  const float* embedding = nullptr;       ///< E (R, V, D)
  const std::int64_t* targets = nullptr;  ///< (R, N), below V; below 0 where nothing is asked
  const float* weights = nullptr;         ///< w (R)

  double* nll = nullptr;          ///< (R, N) nats; 0 where nothing is asked
  float* by_features = nullptr;   ///< (R, N, D)
  float* by_embedding = nullptr;  ///< (R, V, D)
  void* scratch = nullptr;        ///< output_loss_scratch_bytes(), aligned to 16 bytes

  /// The part of models [first, first + count).
  [[nodiscard]] OutputLoss of_models(std::int64_t first, std::int64_t count) const;
};

/// Whether there is a kernel for the width and the current device computes it.
bool output_loss_fits(std::int64_t width);

std::int64_t output_loss_scratch_bytes(const OutputLoss& loss);

/// @param loss  a width that fits.
void output_loss(const OutputLoss& loss, Stream stream);

}  // namespace nas::cuda
