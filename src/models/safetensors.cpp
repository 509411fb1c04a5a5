#include "models/safetensors.hpp"

#include <bit>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/durable_file.hpp"
#include "core/hash.hpp"

namespace nas {

static_assert(std::endian::native == std::endian::little,
              "numbers are written and read as memory has them");

namespace {

using Named = std::vector<std::pair<std::string, torch::Tensor>>;

/// Gives the bytes of a file piece by piece.
void put_file(const Named& tensors, const Write& put) {
  nlohmann::ordered_json header{{"__metadata__", {{"format", "pt"}}}};
  std::int64_t begin = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto end = begin + tensor.numel() * std::int64_t{sizeof(float)};
    header[name] = {
        {"dtype", "F32"}, {"shape", tensor.sizes().vec()}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  auto text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const auto length = static_cast<std::uint64_t>(text.size());
  put({reinterpret_cast<const char*>(&length), sizeof(length)});
  put(text);
  for (const auto& [name, tensor] : tensors) {
    const auto values = tensor.detach().to(at::kFloat).contiguous();
    put({static_cast<const char*>(values.data_ptr()), values.nbytes()});
  }
}

}  // namespace

std::string safetensors(const Named& tensors) {
  std::string bytes;
  put_file(tensors, [&bytes](std::string_view piece) { bytes += piece; });
  return bytes;
}

std::string write_safetensors(const std::filesystem::path& path, const Named& tensors) {
  Sha256 hash;
  write_durably(path, [&](const Write& write) {
    put_file(tensors, [&](std::string_view piece) {
      hash.update(piece);
      write(piece);
    });
  });
  return hash.hex();
}

torch::Tensor read_tensor(SafetensorsFile& file, const StoredTensor& tensor) {
  const auto type = tensor.type == "F32"   ? at::kFloat
                    : tensor.type == "F64" ? at::kDouble
                                           : at::kLong;
  const auto numbers = at::empty(tensor.shape, at::TensorOptions(type));
  file.read(tensor, numbers.data_ptr());
  return numbers;
}

std::map<std::string, torch::Tensor> read_safetensors(const std::string& bytes) {
  SafetensorsFile file(std::make_unique<std::istringstream>(bytes));
  std::map<std::string, torch::Tensor> tensors;
  for (const auto& [name, place] : file.tensors()) tensors.emplace(name, read_tensor(file, place));
  return tensors;
}

}  // namespace nas
