// A file of safetensors: tensors of one that is taken are all of its bytes behind the header, each once; a refusal says what must be.

#include <memory>
#include <sstream>

#include "fuzz/fuzz.hpp"
#include "models/stored_tensors.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using nas::fuzz::require;
  const std::string bytes(nas::fuzz::text(data, size));
  try {
    nas::SafetensorsFile file(std::make_unique<std::istringstream>(bytes), {"F32", "F64", "I64"});
    std::map<std::uint64_t, std::string> pieces;  // by where they begin
    for (const auto& [name, tensor] : file.tensors()) {
      require(tensor.begin <= tensor.end && tensor.end <= size, name + " lies in the file");
      std::int64_t numbers = 1;
      for (const auto entries : tensor.shape) numbers *= entries;
      require(tensor.numel() == numbers, name + " has as many numbers as its shape says");
      std::string piece(tensor.end - tensor.begin, '\0');
      file.read(tensor, piece.data());
      pieces[tensor.begin] += piece;
    }
    std::string whole;
    for (const auto& [begin, piece] : pieces) {
      require(begin == whole.size(), "tensors lie side by side");
      whole += piece;
    }
    require(bytes.size() >= 8 + whole.size() && bytes.ends_with(whole), "they are the file's data");
  } catch (const nas::InputError& error) {
    const std::string_view said = error.what();
    require(said.find("must ") != said.npos && said.size() < 500, std::string(said));
  }
  return 0;
}
