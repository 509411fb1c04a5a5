#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace nas {

/// What the header of a file of safetensors says of a tensor.
struct StoredTensor {
  std::string type;  ///< "F32", "F64" or "I64"
  std::vector<std::int64_t> shape{};
  std::uint64_t begin = 0, end = 0;  ///< bytes behind the header

  [[nodiscard]] std::int64_t numel() const;
};

/// A file of safetensors, of any origin, of which tensors are read one by one. Nothing of it is trusted: the header is at
/// most 100 MB and JSON, each tensor is of one of some types and has as many bytes as its shape says, and together they
/// are the file's data, without gaps and overlaps. Memory: the header and what is read.
/// @see safetensors()
class SafetensorsFile {
 public:
  /// @param types  that tensors may have.
  /// @throws InputError naming the tensor, what it has, and what is allowed.
  explicit SafetensorsFile(std::unique_ptr<std::istream> file,
                           const std::vector<std::string>& types = {"F32"});
  explicit SafetensorsFile(const std::filesystem::path& path,
                           const std::vector<std::string>& types = {"F32"});

  [[nodiscard]] const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  /// The numbers of a tensor, into memory of its size.
  void read(const StoredTensor& tensor, void* numbers);

 private:
  std::unique_ptr<std::istream> file_;
  std::map<std::string, StoredTensor> tensors_;
  std::uint64_t data_ = 0;  // the place behind the header
};

}  // namespace nas
