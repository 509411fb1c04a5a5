#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
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

/// Writes them as such a file, durably. Cost: the bytes of one tensor. @return its SHA-256.
std::string write_safetensors(const std::filesystem::path& path,
                              const std::vector<std::pair<std::string, torch::Tensor>>& tensors);

/// What the header of such a file says of a tensor.
struct StoredTensor {
  std::string type;  ///< "F32", "F64" or "I64"
  std::vector<std::int64_t> shape{};
  std::uint64_t begin = 0, end = 0;  ///< bytes behind the header

  [[nodiscard]] std::int64_t numel() const;
};

/// A file of safetensors, of any origin, of which tensors are read one by one. Nothing of it is trusted: the header is at
/// most 100 MB and JSON, each tensor is of one of some types and has as many bytes as its shape says, and together they
/// are the file's data, without gaps and overlaps. Memory: the header and what is read.
class SafetensorsFile {
 public:
  /// @param types  that tensors may have.
  /// @throws InputError naming the tensor, what it has, and what is allowed.
  explicit SafetensorsFile(const std::filesystem::path& path,
                           const std::vector<std::string>& types = {"F32"});

  [[nodiscard]] const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  /// The numbers of a tensor, into memory of its size.
  void read(const StoredTensor& tensor, void* numbers);
  /// The same as a tensor of their type.
  [[nodiscard]] torch::Tensor read(const StoredTensor& tensor);

 private:
  std::ifstream file_;
  std::map<std::string, StoredTensor> tensors_;
  std::uint64_t data_ = 0;  // the place behind the header
};

/// The tensors of the bytes of such a file by name, of float32 numbers. Cost: their bytes once more.
/// @throws InputError as SafetensorsFile.
std::map<std::string, torch::Tensor> read_safetensors(std::string_view bytes);

}  // namespace nas
