#pragma once

#include <cstdint>

namespace nas::cuda {

/// Vectors of all models, sequences, heads and tokens: element e lies at data[model * model_step +
/// sequence * sequence_step + head * head_step + token * token_step + e].
template <class Real>
struct HeadVectors {
  Real* data = nullptr;
  std::int64_t model_step = 0;
  std::int64_t sequence_step = 0;
  std::int64_t head_step = 0;
  std::int64_t token_step = 0;
};

}  // namespace nas::cuda
