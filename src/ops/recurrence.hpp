#pragma once

#include <cstdint>

#include <torch/types.h>

#include "core/visibility.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// A sequence as recurrent heads take it up, token by token, in their states S (f, d), S_0 = 0:
///
///   u_t = v_t - S_{t-1}' (alpha_t . e_t),  or v_t where nothing is erased
///   S_t = diag(alpha_t) S_{t-1} + k_t u_t',  o_t = S_t' q_t
///
/// What is erased and written is the update's (src/recurrent/update): e = beta k and beta v in place of v
/// for one gate of a head.
/// Leading dimensions are any, and the same everywhere.
struct Recurrence {
  torch::Tensor queries{};  ///< q (..., T, f)
  torch::Tensor keys{};     ///< k (..., T, f)
  torch::Tensor values{};   ///< v (..., T, d)
  torch::Tensor
      log_decays{};        ///< log alpha <= 0, (..., T, 1), or of channels (..., T, f), then >= -5;
                           ///< undefined: 0
  torch::Tensor erased{};  ///< e (..., T, f); undefined: nothing is erased
  bool by_channel = false;  ///< whether log_decays are of channels, also where f = 1
};

struct Recurred {
  torch::Tensor outputs;  ///< o (..., T, d)
  torch::Tensor state;    ///< S after the last token, (..., f, d)
};

/// Whether recurrence() takes a sequence where it is: on the CPU any, on devices with kernels of their own
/// those of which a chunk fits into a block's memory.
[[nodiscard]] bool has_recurrence_kernel(const Recurrence& sequence, std::int64_t chunk = 0);

/// The whole sequence as one operation (kernels/recurrence.hpp), on LibTorch's threads or on a device, by
/// chunks of tokens. No head's result depends on the others or on threads. Not for second derivatives.
///
/// @param sequence  tensors (R, B, H, T, n), float32 or float64, any strides.
/// @param chunk     C >= 1, of decays of channels at most 16 are taken; 0: a size that suits.
/// @return outputs that lie in memory as (R, B, T, H, d), and states.
Recurred recurrence(const Recurrence& sequence, std::int64_t chunk = 0);

}  // namespace nn
}  // namespace nas
