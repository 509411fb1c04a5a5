#pragma once

#include <cstdint>

#include "kernels/cuda/head_vectors.hpp"
#include "kernels/cuda/stream.hpp"
#include "kernels/recurrence.hpp"

namespace nas::cuda {

/// kernels::recurrence() for R models with B sequences and H heads each.
template <class Real>
struct Recurrence {
  std::int64_t models = 0;
  std::int64_t sequences = 0;
  std::int64_t heads = 0;
  kernels::RecurrenceShape shape;
  HeadVectors<const Real> queries, keys, values;
  HeadVectors<const Real> log_decays;  ///< without data: 0
  HeadVectors<const Real> erased;      ///< without data: nothing is erased
  Real* states =
      nullptr;  ///< (R, B, H, chunks + 1, f, padded d): before each chunk, behind the last
  Real* updates = nullptr;  ///< (R, B, H, T, padded d)
};

/// Where gradients go, where they have data. They are written, not added.
template <class Real>
struct RecurrenceGradients {
  HeadVectors<const Real> outputs;  ///< w.r.t. the outputs: given
  const Real* state = nullptr;      ///< w.r.t. the last states, (R, B, H, f, d): given; null: 0
  HeadVectors<Real> queries, keys, values, log_decays, erased;
};

/// Whether the matrices of a chunk fit into the shared memory of a block: in float at 16 tokens, with
/// decays of channels, up to about 100 features and as wide values on an H100.
template <class Real>
bool recurrence_fits(const kernels::RecurrenceShape& shape);

/// One launch, a block for each head of each sequence, which takes up its chunks in turn. Writes states
/// and updates. A head's bits do not depend on the others.
template <class Real>
void recurrence(const Recurrence<Real>& of, HeadVectors<Real> outputs, Stream stream);

/// Likewise, from the states and updates of the forward pass. Nothing is added atomically.
template <class Real>
void recurrence_backward(const Recurrence<Real>& of, const RecurrenceGradients<Real>& gradients,
                         Stream stream);

}  // namespace nas::cuda
