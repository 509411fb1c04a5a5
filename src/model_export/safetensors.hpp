#pragma once

#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

namespace nas {

/// Tensors by name as the bytes of a safetensors file: the length of the header, 8 bytes,
/// little-endian; the header, JSON of type, shape and place of each tensor, filled up with blanks
/// to a multiple of 8 bytes; float32 numbers, little-endian, row-major, one tensor behind the other.
///
/// @param tensors  on the CPU, of any floating-point type. Cost: their bytes once more.
/// @see https://github.com/huggingface/safetensors, section "Format".
std::string safetensors(const std::vector<std::pair<std::string, torch::Tensor>>& tensors);

}  // namespace nas
