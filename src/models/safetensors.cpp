#include "models/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "store/record_json.hpp"

namespace nas {

static_assert(std::endian::native == std::endian::little,
              "numbers are written and read as memory has them");

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

namespace {

/// Where the numbers of a tensor are, in bytes behind the header.
struct Place {
  std::string name;
  std::vector<std::int64_t> shape{};
  std::uint64_t begin = 0, end = 0;
};

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw InputError("tensor " + name + ": " + what);
}

/// @param most  no number of a file is greater than that of its bytes.
std::uint64_t size_of(const std::string& name, const nlohmann::json& number, std::uint64_t most) {
  if (number.is_number_unsigned() && number.get<std::uint64_t>() <= most) {
    return number.get<std::uint64_t>();
  }
  refuse(name, "size or offset " + number.dump() + ", must be an integer in [0, " +
                   std::to_string(most) + "]");
}

Place read_place(const std::string& name, const nlohmann::json& entry, std::uint64_t data) {
  const auto member = [&](const char* key) -> const nlohmann::json& {
    if (!entry.is_object() || !entry.contains(key)) refuse(name, std::string("has no ") + key);
    return entry.at(key);
  };
  if (member("dtype") != "F32") {
    refuse(name, "is of type " + member("dtype").dump() + R"(, must be "F32")");
  }
  const auto& shape = member("shape");
  const auto& offsets = member("data_offsets");
  if (!shape.is_array()) refuse(name, "shape " + shape.dump() + ", must be a list");
  if (!offsets.is_array() || offsets.size() != 2) {
    refuse(name, "data_offsets " + offsets.dump() + ", must be two");
  }
  Place place{name};
  std::uint64_t bytes = sizeof(float);
  for (const auto& size : shape) {
    const auto entries = size_of(name, size, data);
    if (entries > 0 && bytes > data / entries) refuse(name, "is larger than the file");
    bytes *= entries;
    place.shape.push_back(static_cast<std::int64_t>(entries));
  }
  place.begin = size_of(name, offsets[0], data);
  place.end = size_of(name, offsets[1], data);
  if (place.end < place.begin || place.end - place.begin != bytes) {
    refuse(name, "data_offsets " + offsets.dump() + ", must be " + std::to_string(bytes) +
                     " bytes for shape " + shape.dump());
  }
  return place;
}

nlohmann::json header_of(std::string_view text) {
  const std::string refusal = "is no safetensors file: the header is no JSON object";
  nlohmann::json header;
  try {
    header = parse_record(text);
  } catch (const InputError& error) {
    throw InputError(refusal + ": " + error.what());
  }
  if (!header.is_object()) throw InputError(refusal);
  return header;
}

/// The JSON of the header, which is taken from the front of the bytes.
nlohmann::json take_header(std::string_view& bytes) {
  constexpr std::uint64_t kMost = 100'000'000;  // as in the reference implementation
  std::uint64_t length = 0;
  if (bytes.size() < sizeof(length)) throw InputError("is no safetensors file: below 8 bytes");
  std::memcpy(&length, bytes.data(), sizeof(length));
  bytes.remove_prefix(sizeof(length));
  const auto most = std::min<std::uint64_t>(kMost, bytes.size());
  if (length > most) {
    throw InputError("is no whole safetensors file: a header of " + std::to_string(length) +
                     " bytes, must be at most " + std::to_string(most));
  }
  const auto text = bytes.substr(0, length);
  bytes.remove_prefix(length);
  auto header = header_of(text);
  header.erase("__metadata__");
  return header;
}

}  // namespace

std::map<std::string, torch::Tensor> read_safetensors(std::string_view bytes) {
  const auto header = take_header(bytes);
  std::vector<Place> places;
  for (const auto& [name, entry] : header.items()) {
    places.push_back(read_place(name, entry, bytes.size()));
  }
  std::sort(places.begin(), places.end(), [](const Place& one, const Place& other) {
    return std::pair(one.begin, one.end) < std::pair(other.begin, other.end);
  });
  std::uint64_t end = 0;
  for (const auto& place : places) {
    if (place.begin != end) {
      refuse(place.name, "begins at byte " + std::to_string(place.begin) + ", must at " +
                             std::to_string(end) + ", where the one before ends");
    }
    end = place.end;
  }
  if (end != bytes.size()) {
    throw InputError("has " + std::to_string(bytes.size()) + " bytes of data, its tensors " +
                     std::to_string(end));
  }
  std::map<std::string, torch::Tensor> tensors;
  for (const auto& place : places) {
    const auto values = at::empty(place.shape, at::TensorOptions(at::kFloat));
    if (place.end > place.begin) {
      std::memcpy(values.data_ptr(), bytes.data() + place.begin, place.end - place.begin);
    }
    tensors.emplace(place.name, values);
  }
  return tensors;
}

}  // namespace nas
