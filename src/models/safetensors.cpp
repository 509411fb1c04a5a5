#include "models/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include <nlohmann/json.hpp>

#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/words.hpp"
#include "store/record_json.hpp"

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

namespace {

constexpr std::array<std::pair<std::string_view, at::ScalarType>, 3> kTypes{
    {{"F32", at::kFloat}, {"F64", at::kDouble}, {"I64", at::kLong}}};

at::ScalarType type_of(std::string_view name) {
  return std::find_if(kTypes.begin(), kTypes.end(),
                      [name](const auto& type) { return type.first == name; })
      ->second;
}

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

/// @param data  bytes of the file's data.
StoredTensor read_entry(const std::string& name, const nlohmann::json& entry, std::uint64_t data,
                        const std::vector<std::string>& types) {
  const auto member = [&](const char* key) -> const nlohmann::json& {
    if (!entry.is_object() || !entry.contains(key)) refuse(name, std::string("has no ") + key);
    return entry.at(key);
  };
  const auto& type = member("dtype");
  if (std::find(types.begin(), types.end(), type) == types.end()) {
    refuse(name, "is of type " + type.dump() + ", must be " +
                     (types.size() == 1 ? nlohmann::json(types.front()).dump()
                                        : "one of " + join(types)));
  }
  const auto& shape = member("shape");
  const auto& offsets = member("data_offsets");
  if (!shape.is_array()) refuse(name, "shape " + shape.dump() + ", must be a list");
  if (!offsets.is_array() || offsets.size() != 2) {
    refuse(name, "data_offsets " + offsets.dump() + ", must be two");
  }
  StoredTensor place{type};
  std::uint64_t bytes = at::elementSize(type_of(place.type));
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

/// The entries of a header, which is at most as long as the bytes behind its length. @param data  bytes behind it.
std::map<std::string, StoredTensor> entries_of(std::string_view text, std::uint64_t data,
                                               const std::vector<std::string>& types) {
  const std::string refusal = "is no safetensors file: the header is no JSON object";
  nlohmann::json header;
  try {
    header = parse_record(text);
  } catch (const InputError& error) {
    throw InputError(refusal + ": " + error.what());
  }
  if (!header.is_object()) throw InputError(refusal);
  header.erase("__metadata__");
  std::map<std::string, StoredTensor> entries;
  std::vector<const std::pair<const std::string, StoredTensor>*> places;
  for (const auto& [name, entry] : header.items()) {
    places.push_back(&*entries.emplace(name, read_entry(name, entry, data, types)).first);
  }
  std::sort(places.begin(), places.end(), [](const auto* one, const auto* other) {
    return std::pair(one->second.begin, one->second.end) <
           std::pair(other->second.begin, other->second.end);
  });
  std::uint64_t end = 0;
  for (const auto* place : places) {
    if (place->second.begin != end) {
      refuse(place->first, "begins at byte " + std::to_string(place->second.begin) + ", must at " +
                               std::to_string(end) + ", where the one before ends");
    }
    end = place->second.end;
  }
  if (end != data) {
    throw InputError("has " + std::to_string(data) + " bytes of data, its tensors " +
                     std::to_string(end));
  }
  return entries;
}

/// The bytes of a header. @param size  of the file.   @param begin  its first bytes, up to 8.
std::uint64_t header_size(std::string_view begin, std::uint64_t size) {
  constexpr std::uint64_t kMost = 100'000'000;  // as in the reference implementation
  std::uint64_t length = 0;
  if (size < sizeof(length)) throw InputError("is no safetensors file: below 8 bytes");
  std::memcpy(&length, begin.data(), sizeof(length));
  const auto most = std::min<std::uint64_t>(kMost, size - sizeof(length));
  if (length > most) {
    throw InputError("is no whole safetensors file: a header of " + std::to_string(length) +
                     " bytes, must be at most " + std::to_string(most));
  }
  return length;
}

}  // namespace

std::int64_t StoredTensor::numel() const {
  return static_cast<std::int64_t>((end - begin) / at::elementSize(type_of(type)));
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path,
                                 const std::vector<std::string>& types)
    : file_(path, std::ios::binary) {
  const auto size = std::filesystem::file_size(path);
  std::string begin(std::min<std::uint64_t>(size, sizeof(std::uint64_t)), '\0');
  file_.read(begin.data(), std::ssize(begin));
  std::string header(header_size(begin, size), '\0');
  if (!file_.read(header.data(), std::ssize(header))) throw InputError("cannot be read");
  data_ = begin.size() + header.size();
  tensors_ = entries_of(header, size - data_, types);
}

void SafetensorsFile::read(const StoredTensor& tensor, void* numbers) {
  file_.seekg(static_cast<std::streamoff>(data_ + tensor.begin));
  if (!file_.read(static_cast<char*>(numbers),
                  static_cast<std::streamsize>(tensor.end - tensor.begin))) {
    throw InputError("cannot be read, or became shorter");
  }
}

torch::Tensor SafetensorsFile::read(const StoredTensor& tensor) {
  const auto numbers = at::empty(tensor.shape, at::TensorOptions(type_of(tensor.type)));
  read(tensor, numbers.data_ptr());
  return numbers;
}

std::map<std::string, torch::Tensor> read_safetensors(std::string_view bytes) {
  const auto length = header_size(bytes, bytes.size());
  const auto header = bytes.substr(sizeof(length), length);
  const auto data = bytes.substr(sizeof(length) + length);
  std::map<std::string, torch::Tensor> tensors;
  for (const auto& [name, place] : entries_of(header, data.size(), {"F32"})) {
    const auto values = at::empty(place.shape, at::TensorOptions(at::kFloat));
    if (place.end > place.begin) {
      std::memcpy(values.data_ptr(), data.data() + place.begin, place.end - place.begin);
    }
    tensors.emplace(name, values);
  }
  return tensors;
}

}  // namespace nas
