#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "models/stored_tensors.hpp"

namespace nas {

/// Tensors by name as the bytes of a safetensors file: the length of the header, 8 bytes,
/// little-endian; the header, JSON of type, shape and place of each tensor, filled up with blanks
/// to a multiple of 8 bytes; float32 numbers, little-endian, row-major, one tensor behind the other.
///
/// @param tensors  on the CPU, of any floating-point type. Cost: their bytes once more.
/// @see https://github.com/huggingface/safetensors, section "Format".
std::string safetensors(const std::vector<std::pair<std::string, torch::Tensor>>& tensors);

/// Writes them as such a file, durably. Cost: the bytes of one tensor. @return its SHA-256.
std::string write_safetensors(const std::filesystem::path& path,
                              const std::vector<std::pair<std::string, torch::Tensor>>& tensors);

/// A tensor of such a file, of its type.
torch::Tensor read_tensor(SafetensorsFile& file, const StoredTensor& tensor);

/// The tensors of the bytes of such a file by name, of float32 numbers. Cost: their bytes twice more.
/// @throws InputError as SafetensorsFile.
std::map<std::string, torch::Tensor> read_safetensors(const std::string& bytes);

}  // namespace nas
