#pragma once

#include <algorithm>
#include <cstdint>

namespace nas::nn {

/// Rows of logits that an output layer computes at a time on the CPU: 16 MiB of them, which stay in the last-level cache while the
/// products are large enough; a multiple of what products take at once, at least that. @param bytes  of a logit.
inline std::int64_t logit_rows(std::int64_t vocabulary, std::int64_t bytes) {
  constexpr std::int64_t kBytes = std::int64_t{16} << 20U, kMultiple = 128;
  return std::max<std::int64_t>(kBytes / (bytes * vocabulary) / kMultiple, 1) * kMultiple;
}

}  // namespace nas::nn
