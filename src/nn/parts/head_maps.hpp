#pragma once

#include <array>
#include <cstdint>

#include <torch/types.h>

#include "nn/parts/option.hpp"

namespace nas {
namespace NAS_PUBLIC nn {

/// Two maps of weights in each head of attention, of the first and the second halves of its queries and keys, d / 2
/// entries each, which are normed and mapped by position by themselves. Tensors as in nn/attention.hpp.
class HeadMaps {
 public:
  virtual ~HeadMaps() = default;
  /// What takes the place of one map: a sum of both, each with a factor for the whole layer, so that it may as well be
  /// of weighted values.
  /// @param maps  weights (M, B, H, T, T), or weighted values (M, B, T, H, d).
  [[nodiscard]] virtual torch::Tensor combined(const std::array<torch::Tensor, 2>& maps) const = 0;
  /// @param outputs  (M, B, T, H, d), weighted values of what is combined.
  [[nodiscard]] virtual torch::Tensor normalised(const torch::Tensor& outputs) const {
    return outputs;
  }
};

/// Of gene maps, but for single, which has no module.
OptionRegistry<HeadMaps>& head_maps();

// NAS_REGISTER_HEAD_MAPS(Class, .key = ...): as of NAS_REGISTER_OPTION.
#define NAS_REGISTER_HEAD_MAPS(Class, ...) \
  NAS_REGISTER_OPTION(::nas::nn::head_maps(), "maps", Class, __VA_ARGS__)

}  // namespace nn
}  // namespace nas
