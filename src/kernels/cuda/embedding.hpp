#pragma once

#include <cstdint>

#include "kernels/cuda/stream.hpp"

namespace nas::cuda {

/// Tokens (R, N) in [0, V) that rows (R, N, D) of R matrices (R, V, D) were read for, each model's in
/// order, and where each of them is.
struct Embedding {
  const std::int32_t* tokens = nullptr;  ///< (R, N), sorted
  const std::int64_t* places = nullptr;  ///< (R, N): which row of the model it is of
  std::int64_t models = 0;
  std::int64_t num_tokens = 0;  ///< N, of a model
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;
};

/// Gradients w.r.t. the matrices from those w.r.t. the rows: row v is the sum over the tokens that
/// are v, in an order that `places` determines. Rows of tokens that do not occur are left as they are.
///
/// @param by_rows  (R, N, D).   @param by_matrix  (R, V, D).
template <class Real>
void embedding_backward(const Embedding& embedding, const Real* by_rows, Real* by_matrix,
                        Stream stream);

}  // namespace nas::cuda
