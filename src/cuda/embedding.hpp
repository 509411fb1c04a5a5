#pragma once

#include <cstdint>

#include "cuda/stream.hpp"

namespace nas::cuda {

/// Tokens (R, N) in [0, V) that rows (R, N, D) of R matrices (R, V, D) were read for.
struct Embedding {
  const std::int64_t* tokens = nullptr;
  std::int64_t models = 0;
  std::int64_t num_tokens = 0;  ///< N, of a model
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;
};

/// Gradients w.r.t. the matrices from those w.r.t. the rows: row v is the sum over the tokens that
/// are v, in an order that their places determine. Rows of tokens that do not occur are left as
/// they are. Each token looks at all of its model.
///
/// @param by_rows  (R, N, D).   @param by_matrix  (R, V, D).
template <class Real>
void embedding_backward(const Embedding& embedding, const Real* by_rows, Real* by_matrix,
                        Stream stream);

}  // namespace nas::cuda
