#pragma once

#include <cstdint>

#include "kernels/cuda/stream.hpp"

namespace nas::cuda {

/// Some elements of one parameter of one model, with their gradient and moments.
template <class Real>
struct Piece {
  Real* parameter = nullptr;
  const Real* gradient = nullptr;  ///< null: nothing happens to the piece
  Real* first = nullptr;           ///< moments
  Real* second = nullptr;
  std::int64_t size = 0;
  std::int32_t model = 0;
  bool decays = false;
};

/// A block does a piece: cut parameters into pieces of at most this size.
inline constexpr std::int64_t kPieceSize = 4096;

struct AdamWConstants {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

/// One step of R models. All arrays are read when the kernels run, so that a CUDA graph can be
/// replayed.
template <class Real>
struct AdamW {
  const Piece<Real>* pieces = nullptr;  ///< ordered by model
  std::int64_t num_pieces = 0;
  const std::int64_t* first_pieces = nullptr;  ///< (R + 1): pieces of model r are [r], ..., [r + 1]
  std::int64_t models = 0;
  const double* learning_rates = nullptr;  ///< (R), as the following ones
  const double* weight_decays = nullptr;
  const double* clip_norms = nullptr;
  std::int64_t* steps = nullptr;  ///< steps done; each call adds 1
  double* scratch = nullptr;      ///< adamw_scratch_size() numbers
  AdamWConstants constants;
};

template <class Real>
std::int64_t adamw_scratch_size(const AdamW<Real>& step);

/// AdamW (Loshchilov & Hutter 2017, arXiv:1711.05101) after clipping the gradient g of each model
/// by its total norm, as PyTorch computes it; three launches:
///
///   g <- g min(1, clip / (|g| + 1e-6)),   p <- p - rate decay p,
///   m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2,
///   p <- p - rate / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + eps)
///
/// The gradient itself is left as it is. A norm that is not a number spoils its own model only.
template <class Real>
void adamw(const AdamW<Real>& step, Stream stream);

}  // namespace nas::cuda
