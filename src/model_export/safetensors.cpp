#include "model_export/safetensors.hpp"

#include <bit>
#include <cstdint>

#include <nlohmann/json.hpp>

namespace nas {

static_assert(std::endian::native == std::endian::little, "numbers are written as memory has them");

std::string safetensors(const std::vector<std::pair<std::string, torch::Tensor>>& tensors) {
  nlohmann::ordered_json header{{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const auto values = tensor.detach().to(at::kFloat).contiguous();
    const auto begin = data.size();
    data.append(static_cast<const char*>(values.data_ptr()), values.nbytes());
    header[name] = {
        {"dtype", "F32"}, {"shape", values.sizes().vec()}, {"data_offsets", {begin, data.size()}}};
  }
  auto text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const auto length = static_cast<std::uint64_t>(text.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text + data;
}

}  // namespace nas
