#include "nn/parts/block_pattern.hpp"

#include <algorithm>

#include "ops/device_copy.hpp"

namespace nas::nn {

torch::Tensor BlockPattern::visible(const torch::Tensor& keys, std::int64_t first) const {
  const auto first_block = first / block_;
  const auto blocks = (keys.size(3) - 1) / block_ + 1;
  const auto shown =
      at::zeros({heads_, blocks - first_block, blocks}, at::TensorOptions(at::kBool));
  auto rows = shown.accessor<bool, 3>();
  for (std::int64_t h = 0; h < heads_; ++h) {
    for (auto own = first_block; own < blocks; ++own) {
      auto row = rows[h][own - first_block];
      for (const auto block : drawn(h, own)) row[block] = true;
      for (std::int64_t block = 0; block < std::min(globals_, own); ++block) row[block] = true;
      if (own > 0) row[own - 1] = true;
      row[own] = true;
    }
  }
  const auto places = at::arange(keys.size(3), keys.options().dtype(at::kLong));
  const auto queries = places.slice(0, first);
  return sent(shown, keys.device())
      .index_select(1, queries.div(block_, /*rounding_mode=*/"floor") - first_block)
      .index_select(2, places.div(block_, /*rounding_mode=*/"floor"))
      .logical_and(queries.unsqueeze(1).ge(places));
}

}  // namespace nas::nn
