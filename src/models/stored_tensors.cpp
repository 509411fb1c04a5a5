#include "models/stored_tensors.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/words.hpp"
#include "store/record_json.hpp"

namespace nas {

namespace {

constexpr std::size_t kMostSizes = 8;
constexpr std::array<std::pair<std::string_view, std::uint64_t>, 3> kBytes{
    {{"F32", 4}, {"F64", 8}, {"I64", 8}}};

/// Of a number of a type.
std::uint64_t bytes_of(std::string_view name) {
  return std::find_if(kBytes.begin(), kBytes.end(),
                      [name](const auto& type) { return type.first == name; })
      ->second;
}

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw InputError("tensor " + beginning(name) + ": " + what);
}

/// @param most  no number of a file is greater than that of its bytes.
std::uint64_t size_of(const std::string& name, const nlohmann::json& number, std::uint64_t most) {
  if (number.is_number_unsigned() && number.get<std::uint64_t>() <= most) {
    return number.get<std::uint64_t>();
  }
  refuse(name, "size or offset " + beginning(number.dump()) + ", must be an integer in [0, " +
                   std::to_string(most) + "]");
}

/// @param data  bytes of the file's data.
StoredTensor read_entry(const std::string& name, const nlohmann::json& entry, std::uint64_t data,
                        const std::vector<std::string>& types) {
  const auto member = [&](const char* key) -> const nlohmann::json& {
    if (!entry.is_object() || !entry.contains(key)) {
      refuse(name, std::string("has no ") + key + ", must have dtype, shape and data_offsets");
    }
    return entry.at(key);
  };
  const auto& type = member("dtype");
  if (std::find(types.begin(), types.end(), type) == types.end()) {
    refuse(name, "is of type " + beginning(type.dump()) + ", must be " +
                     (types.size() == 1 ? nlohmann::json(types.front()).dump()
                                        : "one of " + join(types)));
  }
  const auto& shape = member("shape");
  const auto& offsets = member("data_offsets");
  if (!shape.is_array() || shape.size() > kMostSizes) {
    refuse(name, "shape " + beginning(shape.dump()) + ", must be a list of at most " +
                     std::to_string(kMostSizes));
  }
  if (!offsets.is_array() || offsets.size() != 2) {
    refuse(name, "data_offsets " + beginning(offsets.dump()) + ", must be two");
  }
  StoredTensor place{type};
  std::uint64_t bytes = bytes_of(place.type);
  for (const auto& size : shape) {
    const auto entries = size_of(name, size, data);
    if (entries > 0 && bytes > data / entries) {
      refuse(name, "shape " + beginning(shape.dump()) +
                       " is larger than the file, must be at most " + std::to_string(data) +
                       " bytes");
    }
    bytes *= entries;
    place.shape.push_back(static_cast<std::int64_t>(entries));
  }
  place.begin = size_of(name, offsets[0], data);
  place.end = size_of(name, offsets[1], data);
  if (place.end < place.begin || place.end - place.begin != bytes) {
    refuse(name, "data_offsets " + beginning(offsets.dump()) + ", must be " +
                     std::to_string(bytes) + " bytes for shape " + beginning(shape.dump()));
  }
  return place;
}

/// The entries of a header, which is at most as long as the bytes behind its length. @param data  bytes behind it.
std::map<std::string, StoredTensor> entries_of(std::string_view text, std::uint64_t data,
                                               const std::vector<std::string>& types) {
  const std::string refusal = "is no safetensors file: the header must be a JSON object";
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
    if (name.find('\0') != name.npos)  // where messages end
      refuse(nlohmann::json(name).dump(), "must have a name without bytes of 0");
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
    throw InputError("has " + std::to_string(data) + " bytes of data, must have " +
                     std::to_string(end) + ", those of its tensors");
  }
  return entries;
}

}  // namespace

std::int64_t StoredTensor::numel() const {
  return static_cast<std::int64_t>((end - begin) / bytes_of(type));
}

SafetensorsFile::SafetensorsFile(std::unique_ptr<std::istream> file,
                                 const std::vector<std::string>& types)
    : file_(std::move(file)) {
  constexpr std::uint64_t kMost = 100'000'000;  // as in the reference implementation
  const auto end = file_->seekg(0, std::ios::end).tellg();
  if (!file_->seekg(0)) throw InputError("cannot be read");
  const auto size = static_cast<std::uint64_t>(end);
  std::uint64_t length = 0;
  if (size < sizeof(length)) {
    throw InputError("is no safetensors file: has " + std::to_string(size) +
                     " bytes, must have 8 before the header");
  }
  file_->read(reinterpret_cast<char*>(&length), sizeof(length));
  const auto most = std::min<std::uint64_t>(kMost, size - sizeof(length));
  if (length > most) {
    throw InputError("is no whole safetensors file: a header of " + std::to_string(length) +
                     " bytes, must be at most " + std::to_string(most));
  }
  std::string header(length, '\0');
  if (!file_->read(header.data(), std::ssize(header))) throw InputError("cannot be read");
  data_ = sizeof(length) + length;
  tensors_ = entries_of(header, size - data_, types);
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path,
                                 const std::vector<std::string>& types)
    : SafetensorsFile(std::make_unique<std::ifstream>(path, std::ios::binary), types) {}

void SafetensorsFile::read(const StoredTensor& tensor, void* numbers) {
  file_->seekg(static_cast<std::streamoff>(data_ + tensor.begin));
  if (!file_->read(static_cast<char*>(numbers),
                   static_cast<std::streamsize>(tensor.end - tensor.begin))) {
    throw InputError("cannot be read, or became shorter");
  }
}

}  // namespace nas
