#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "nn/attention.hpp"

namespace nas::nn {

/// Blocks of `pattern_block` keys: the query's own, the one before, the first `globals`, and some that
/// are drawn for each head and block.
class BlockPattern : public Pattern {
 public:
  explicit BlockPattern(const AttentionShape& shape)
      : heads_(shape.heads),
        block_(shape.sizes.integer("pattern_block")),
        globals_(shape.sizes.integer("globals")) {}

  [[nodiscard]] torch::Tensor visible(const torch::Tensor& keys, std::int64_t first) const override;

 protected:
  [[nodiscard]] std::int64_t globals() const { return globals_; }

 private:
  /// Others that a head shows to queries of block `own`, from block globals on and before own - 1.
  [[nodiscard]] virtual std::vector<std::int64_t> drawn(std::int64_t head,
                                                        std::int64_t own) const = 0;

  std::int64_t heads_, block_, globals_;
};

}  // namespace nas::nn
