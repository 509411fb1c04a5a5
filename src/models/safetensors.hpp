#pragma once

#include <map>
#include <string>
#include <string_view>
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

/// The tensors of such a file by name, of any origin. Nothing of it is trusted: the header
/// is at most 100 MB and JSON, each tensor is of float32 numbers and has as many bytes as its shape
/// says, and together they are the file's data, without gaps and overlaps. Cost: their bytes once
/// more.
/// @throws InputError naming the tensor, what it has, and what is allowed.
std::map<std::string, torch::Tensor> read_safetensors(std::string_view bytes);

}  // namespace nas
